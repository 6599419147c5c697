import t from 'tap'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DailyTraffic, mostPairs } from '../../../src/hub/wiring/daily-traffic.ts'
import type { Traffic, TrafficLabels } from '../../../src/metrics/traffic.ts'

const labels = (client: string, resource: string, verb = 'get'): TrafficLabels => ({
  client,
  resource,
  verb,
  subresources: '',
})

const bytes = (receivedBytes: number): Traffic => ({
  inFlight: 0,
  receivedBytes,
  sentBytes: 1,
  requestBytes: 2,
  answerBytes: 3,
})

const fails = (cause: unknown): never => {
  throw cause
}

void t.test('counted bytes are added to their day, and outlive a crash', async (t) => {
  const file = join(t.testdir(), 'traffic.json')
  const counted = new Map([
    [labels('kubelet', 'pods'), bytes(10)],
    [labels('kubelet', 'pods', 'list'), bytes(100)],
  ])
  const traffic = new DailyTraffic(file, { counted: () => counted, onFailure: fails })
  const [row] = traffic.rows()
  t.match(row, { component: 'kubelet', resource: 'pods', receivedBytes: 110, answerBytes: 6 })
  t.equal(traffic.rows()[0]?.receivedBytes, 110, 'nothing is counted twice')
  await traffic.write()
  // It is not disposed of: the process was killed.
  const later = new Map([[labels('kubelet', 'pods'), bytes(5)]])
  const next = new DailyTraffic(file, { counted: () => later, onFailure: fails })
  t.equal(next.rows()[0]?.receivedBytes, 115)
  await next[Symbol.asyncDispose]()
  t.match(JSON.parse(readFileSync(file, 'utf8')), [[/^20/, 'kubelet', 'pods', 115]])
})

void t.test('old days, days to come and what is no row are left out', (t) => {
  const day = new Date().toISOString().slice(0, 10)
  const file = join(
    t.testdir({
      'traffic.json': JSON.stringify([
        ['1970-01-01', 'kubelet', 'pods', 1, 1, 1, 1],
        ['2999-01-01', 'kubelet', 'pods', 1, 1, 1, 1],
        [day, 'kubelet', 'pods', 7, 1, 1, 1],
        [day, 'kubelet', 'nodes', -7, 1, 1, 1],
        'row',
      ]),
    }),
    'traffic.json',
  )
  const traffic = new DailyTraffic(file, { counted: () => [], onFailure: fails })
  t.strictSame(
    traffic.rows().map(({ receivedBytes }) => receivedBytes),
    [7],
  )
  writeFileSync(file, '[[')
  t.strictSame(new DailyTraffic(file, { counted: () => [], onFailure: fails }).rows(), [])
  t.end()
})

void t.test('beyond a number of pairs a day the rest counts as other', (t) => {
  const file = join(t.testdir(), 'traffic.json')
  const counted = new Map(
    Array.from({ length: mostPairs + 5 }, (_, at) => [labels(`c-${at}`, 'pods'), bytes(1)]),
  )
  const rows = new DailyTraffic(file, { counted: () => counted, onFailure: fails }).rows()
  t.equal(rows.length, mostPairs + 1)
  t.equal(rows.find(({ component }) => component === 'other')?.receivedBytes, 5)
  t.end()
})
