import t from 'tap'
import { processorComment, readResults } from './tap-results.ts'
import { timingsOf } from './timings.ts'

void t.test(
  'each folder has the times of its files and of their processes, and what worked most',
  async (t) => {
    const results = readResults([
      '# Subtest: test/hub/store/store.test.ts',
      '    ok 1 - should be equal',
      '    1..1',
      'ok 1 - test/hub/store/store.test.ts # time=1500ms',
      `# ${processorComment('test/hub/store/store.test.ts', 2.25)}`,
      '# Subtest: 2 files from test/hub/store/log/a.test.ts on',
      '    ok 1 - test/hub/store/log/a.test.ts # time=250ms',
      '    ok 2 - test/hub/store/log/b.test.ts # time=250ms',
      '    1..2',
      'ok 2 - 2 files from test/hub/store/log/a.test.ts on # time=900ms',
      `# ${processorComment('2 files from test/hub/store/log/a.test.ts on', 0.5)}`,
      'ok 3 - test/scenarios/life.test.ts # time=3000ms',
      `# ${processorComment('test/scenarios/life.test.ts', 4)}`,
    ])
    t.equal(
      timingsOf(results, { seconds: 4, processor: 7.5 }),
      [
        'seconds by folder  files  wall  processor',
        'test/scenarios         1   3.0        4.0',
        'test/hub/store         3   2.0        2.8',
        'the run                4   4.0        7.5',
        '',
        'seconds by process, from its first file on  processor',
        'test/scenarios/life.test.ts                       4.0',
        'test/hub/store/store.test.ts                      2.3',
        'test/hub/store/log/a.test.ts                      0.5',
      ].join('\n'),
    )
  },
)
