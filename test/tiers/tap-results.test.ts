import t from 'tap'
import { readResults } from './tap-results.ts'

const read = (tap: string) => readResults(tap.split('\n'))

void t.test('assertions count, the points that close their tests do not', async (t) => {
  const { passed, failed, files, empty } = read(`TAP version 14
# Subtest: test/a.test.ts
    # Subtest: a sentence
        ok 1 - should be equal
        not ok 2 - should be equal
          ---
          diff: |
            1..0
            ok 3 - is what was compared
          ...
        1..2
        # failed 1 of 2 tests
    not ok 1 - a sentence # time=1.2ms
    ok 2 - beside it
    1..2
not ok 1 - test/a.test.ts # time=30.5ms
# Subtest: test/b.test.ts
    ok 1 - b
    1..1
ok 2 - test/b.test.ts # time=99ms
1..2`)
  t.strictSame({ passed, failed, empty }, { passed: 3, failed: 1, empty: [] })
  t.strictSame(
    files.map(({ path }) => path),
    ['test/b.test.ts', 'test/a.test.ts'],
  )
})

void t.test('what was skipped is counted by its reason', async (t) => {
  const { passed, skipped, empty } = read(`# Subtest: test/a.test.ts
    ok 1 - online # SKIP no control plane: no etcd in PATH
    ok 2 - offline # SKIP no control plane: no etcd in PATH
    ok 3 - as another user # SKIP
    # Subtest: by what it finds only later
        1..0 # no client-go
    ok 4 - by what it finds only later # SKIP no client-go
    1..4
ok 1 - test/a.test.ts # time=3ms`)
  t.equal(passed, 0)
  t.strictSame(
    [...skipped],
    [
      ['no control plane: no etcd in PATH', 2],
      ['no reason given', 1],
      ['no client-go', 1],
    ],
  )
  t.strictSame(empty, [], 'a file whose tests all have a reason is not empty')
})

void t.test('a test and a file without an assertion are named', async (t) => {
  const { passed, skipped, empty } = read(`# Subtest: test/a.test.ts
    # Subtest: outer
        # Subtest: inner
            1..0
        ok 1 - inner # time=0.6ms
        ok 2 - should be equal
        1..2
    ok 1 - outer # time=1ms
    1..1
ok 1 - test/a.test.ts # time=3ms
# Subtest: test/b.test.ts
    1..0 # no tests found
ok 2 - test/b.test.ts # SKIP no tests found`)
  t.equal(passed, 1)
  t.strictSame(empty, ['test/a.test.ts: inner', 'test/b.test.ts'])
  t.equal(skipped.size, 0)
})

void t.test(
  'files that share a process are files, and what has none of its own is empty',
  async (t) => {
    const { passed, files, empty } = read(`# Subtest: 2 files from test/a.test.ts on
    # Subtest: test/a.test.ts
        # Subtest: a sentence
            ok 1 - should be equal
            1..1
        ok 1 - a sentence # time=1ms
        1..1
    ok 1 - test/a.test.ts # time=20ms
    # Subtest: test/b.test.ts
        1..0
    ok 2 - test/b.test.ts # time=10ms
    1..2
ok 1 - 2 files from test/a.test.ts on # time=30ms`)
    t.equal(passed, 1)
    t.strictSame(files, [
      { path: 'test/a.test.ts', ms: 20 },
      { path: 'test/b.test.ts', ms: 10 },
    ])
    t.strictSame(empty, ['test/b.test.ts'])
  },
)
