import t from 'tap'
import { interleave } from '../../bench/measure/rounds.ts'
import { type Metric, type Sample, summarize } from '../../bench/measure/row.ts'
import { tableOf } from '../../bench/measure/table.ts'

const metrics: readonly Metric[] = [
  { key: 'time', title: 'ms', digits: 1, against: 'direct' },
  { key: 'cpu', title: 'cpu ms', digits: 2, against: 'haproxy' },
]

const sample = (time: number, cpu?: number): Sample => ({
  figures: { time, cpu },
  failures: {},
  loadShare: 0.1,
})

const series = [
  { peer: 'direct', samples: [sample(10), sample(40), sample(10)] },
  { peer: 'hub', samples: [sample(12, 3), sample(48, 5), sample(13, 4)] },
]

void t.test('each peer is measured once a round, and begins a round in its turn', async (t) => {
  const order: string[] = []
  const samples = await interleave(['a', 'b', 'c'], 3, async (peer, round) => {
    order.push(peer)
    return `${peer}${round}`
  })
  t.equal(order.join(''), 'abcbcacab')
  t.strictSame(samples.get('b'), ['b0', 'b1', 'b2'])
})

void t.test('a peer is set beside the one its metric names, in the same round', async (t) => {
  const { peers } = summarize({ name: 'row', title: 'a row', metrics }, series)
  t.strictSame(peers[1]?.figures['time'], {
    median: 13,
    min: 12,
    max: 48,
    ratio: { median: 1.2, min: 1.2, max: 1.3 },
  })
})

void t.test('there is no ratio to oneself nor to a peer that is absent', async (t) => {
  const { peers } = summarize({ name: 'row', title: 'a row', metrics }, series)
  t.strictSame(peers[0]?.figures, { time: { median: 10, min: 10, max: 40 } })
  t.strictSame(peers[1]?.figures['cpu'], { median: 4, min: 3, max: 5 })
})

void t.test(
  'failures of all rounds are added up and shown, as is a load that was too busy',
  async (t) => {
    const failing: Sample = { figures: {}, failures: { 'status 500': 2 }, loadShare: 0.97 }
    const result = summarize({ name: 'row', title: 'a row', metrics }, [
      { peer: 'hub', samples: [failing, failing] },
    ])
    t.strictSame(result.peers[0]?.failures, { 'status 500': 4 })
    const table = tableOf(result)
    t.match(table, 'hub: 4 times status 500')
    t.match(table, 'the load took 97 % of a core')
  },
)

void t.test('a table has median, range and ratio of each figure', async (t) => {
  const table = tableOf(summarize({ name: 'row', title: 'a row', metrics }, series))
  t.strictSame(table.split('\n'), [
    'row: a row',
    '                   ms : direct  cpu ms : haproxy',
    'direct        10.0 (10.0-40.0)                 -',
    'hub     13.0 (12.0-48.0) x1.20  4.00 (3.00-5.00)',
    '',
  ])
})
