import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { readOptions } from '../../bench/options.ts'

const rows = ['get-passed', 'get-recorded', 'list-json', 'offline-get'].map((name) => ({ name }))

const namesOf = (argv: readonly string[]): unknown => {
  const read = readOptions(argv, rows, 'bench')
  return 'mistakes' in read ? read : read.rows.map(({ name }) => name)
}

void t.test('--only selects a row, or all with that prefix before a dash', async (t) => {
  t.strictSame(namesOf(['--only', 'get,list-json']), ['get-passed', 'get-recorded', 'list-json'])
  t.strictSame(namesOf(['--only=offline']), ['offline-get'])
  t.strictSame(
    namesOf([]),
    rows.map(({ name }) => name),
  )
})

void t.test('results of all rows are kept, and of some only where a folder is named', async (t) => {
  const outOf = (...argv: string[]): unknown => {
    const read = readOptions(argv, rows, 'bench')
    return 'mistakes' in read ? read : read.out
  }
  t.equal(outOf('--runs=5', '--baseline=results.json'), 'bench')
  for (const part of ['--only=get', '--peers=hub', '--against=.', '--hub=main.ts'])
    t.equal(outOf(part), undefined, part)
  t.equal(outOf('--only=get', '--out=here'), 'here')
})

void t.test('two builds are measured more often, beside the API server alone', async (t) => {
  t.match(readOptions(['--against=.'], rows, 'bench'), {
    runs: 7,
    peers: ['direct', 'against', 'hub'],
  })
  t.match(readOptions([], rows, 'bench'), { runs: 3, peers: undefined })
})

void t.test('mistakes are listed together', async (t) => {
  const read = readOptions(
    ['--only', 'get,ge,watch', '--runs', '0', '--seconds=x', '--peers=hub,envoy'],
    rows,
    'bench',
  )
  t.match(read, {
    mistakes: [
      'no row ge, watch; there are get-passed, get-recorded, list-json, offline-get',
      /^--peers=hub,envoy: there are direct, .*hub$/,
      /^--runs=0/,
      /^--seconds=x/,
    ],
  })
  t.match(readOptions(['--unknown'], rows, 'bench'), { mistakes: [/--unknown/] })
  t.match(readOptions(['--upstream=moon'], rows, 'bench'), { mistakes: [/real or sandbox/] })
})

void t.test('an unknown row exits 2 with the known names, before anything starts', async (t) => {
  const run = join(import.meta.dirname, '..', '..', 'bench', 'run.ts')
  const { status, stdout, stderr } = spawnSync(process.execPath, [run, '--only', 'nonsense'], {
    encoding: 'utf8',
  })
  t.equal(status, 2)
  t.equal(stdout, '')
  t.match(stderr, /no row nonsense; there are memory-idle, .*memory-after/)
})
