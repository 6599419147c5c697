import t from 'tap'
import { interleave } from '../../bench/measure/rounds.ts'
import {
  hasFailed,
  type Metric,
  type Sample,
  type Series,
  summarize,
} from '../../bench/measure/row.ts'
import { tableOf } from '../../bench/report/table.ts'

const metrics: readonly Metric[] = [
  { key: 'time', title: 'ms', digits: 1, against: 'direct', aims: [{ most: 1.1, to: 'direct' }] },
  { key: 'cpu', title: 'cpu ms', digits: 2, against: 'haproxy-http', aims: [{ most: 4 }] },
]

const sample = (time: number, cpu?: number): Sample => ({
  figures: { time, cpu },
  failures: {},
  loadShare: 0.1,
})

const series: readonly Series[] = [
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
    rounds: 3,
    ratios: { direct: { median: 1.2, min: 1.2, max: 1.3 } },
  })
})

void t.test('a peer has no ratio to itself or to an absent peer', async (t) => {
  const { peers } = summarize({ name: 'row', title: 'a row', metrics }, series)
  t.strictSame(peers[0]?.figures, {
    time: { median: 10, min: 10, max: 40, rounds: 3, ratios: {} },
  })
  t.strictSame(peers[1]?.figures['cpu'], { median: 4, min: 3, max: 5, rounds: 3, ratios: {} })
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

void t.test('a percentile of no answers is no figure', async (t) => {
  const { peers } = summarize({ name: 'row', title: 'a row', metrics }, [
    { peer: 'hub', samples: [sample(Number.NaN, 3)] },
  ])
  t.strictSame(Object.keys(peers[0]?.figures ?? {}), ['cpu'])
})

void t.test('a table has median, range, ratio and aim of each figure', async (t) => {
  const table = tableOf(summarize({ name: 'row', title: 'a row', metrics }, series))
  t.strictSame(table.split('\n'), [
    'row: a row',
    '                     direct                  hub          ratio                       aim',
    'ms      10.0 (10.0 to 40.0)  13.0 (12.0 to 48.0)  1.20 x direct  1.1 x direct not reached',
    'cpu ms                    -  4.00 (3.00 to 5.00)                                4 reached',
    '',
  ])
})

void t.test(
  'a run fails with the hub and what it is compared with, not with yurthub',
  async (t) => {
    const failing = (peer: Series['peer']) =>
      summarize({ name: 'row', title: 'a row', metrics }, [
        ...series.filter((each) => each.peer !== peer),
        { peer, samples: [{ ...sample(1, 1), failures: { 'a watch ended': 2 } }] },
      ])
    t.ok((['hub', 'direct', 'haproxy-http'] as const).every((peer) => hasFailed(failing(peer))))
    t.notOk(hasFailed(failing('yurthub')))
    t.notOk(hasFailed(summarize({ name: 'row', title: 'a row', metrics }, series)))
  },
)
