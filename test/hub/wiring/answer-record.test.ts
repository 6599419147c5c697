import { mock } from 'node:test'
import pino from 'pino'
import t from 'tap'
import {
  AnswerRecord,
  LastHour,
  mostKinds,
  sampleMs,
} from '../../../src/hub/wiring/answer-record.ts'

const long = 3_600_000

const line = (code: number, path: string, { ms = 1, component = 'kubelet' } = {}) => ({
  id: '1',
  method: 'GET',
  path,
  verb: 'get',
  resource: '',
  component,
  code,
  source: code < 500 ? 'cloud' : 'hub',
  ms,
})

const detail = { at: 0, caller: 'node', sentBytes: 0, isShort: true } as const

const record = (): AnswerRecord => new AnswerRecord(pino({ level: 'silent' }), long)

function logged(level: 'info' | 'debug') {
  const said: Record<string, unknown>[] = []
  const write = (text: string): void => void said.push(JSON.parse(text) as Record<string, unknown>)
  const answers = new AnswerRecord(pino({ level, base: null, timestamp: false }, { write }), long)
  const brief = () => said.map(({ msg, code, path, times }) => [msg, code, path, times])
  return { answers, said, brief }
}

void t.test('a request that fails is seen at info, and its like are counted', async (t) => {
  const { answers, brief } = logged('info')
  for (const path of ['/a', '/b', '/c']) answers.log(line(503, path))
  answers.log(line(500, '/d'))
  for (const code of [200, 401, 404]) answers.log(line(code, '/e'))
  const atOnce = [
    ['a request failed', 503, '/a', undefined],
    ['a request failed', 500, '/d', undefined],
  ]
  t.strictSame(brief(), atOnce)
  answers[Symbol.dispose]()
  t.strictSame(brief(), [...atOnce, ['a request failed', 503, '/c', 2]], 'the latest, and how many')
})

void t.test('at debug each answer has its line, to the microsecond', async (t) => {
  const { answers, said, brief } = logged('debug')
  answers.log(line(200, '/a', { ms: 1.2345678901234 }))
  answers.log(line(404, '/b'))
  answers[Symbol.dispose]()
  t.strictSame(brief(), [
    ['answered', 200, '/a', undefined],
    ['answered', 404, '/b', undefined],
  ])
  t.equal(said[0]?.['ms'], 1.235)
})

void t.test('at debug failures and refusals have their own lines, too', async (t) => {
  const { answers, said } = logged('debug')
  answers.log(line(503, '/a'))
  answers.log(refused(401, 'scanner'))
  answers.log(refused(401, 'scanner'))
  answers[Symbol.dispose]()
  t.strictSame(
    said.map(({ level, msg, code, times }) => [level, msg, code, times]),
    [
      [20, 'answered', 503, undefined],
      [30, 'a request failed', 503, undefined],
      [20, 'answered', 401, undefined],
      [40, 'a request was refused', 401, undefined],
      [20, 'answered', 401, undefined],
      [40, 'a request was refused', 401, undefined],
    ],
  )
})

const refused = (code: number, component: string) => ({
  ...line(code, '/a', { component }),
  source: 'hub',
  why: 'Unauthorized',
})

void t.test('refusals of the hub itself are warnings, and their like are counted', async (t) => {
  const { answers, said } = logged('info')
  for (let i = 0; i < 5; i++) answers.log(refused(401, 'scanner'))
  answers.log(refused(401, 'kubelet'))
  answers.log({ ...refused(403, 'kubelet'), source: 'cloud' })
  answers.log({ ...refused(404, 'kubelet') })
  answers[Symbol.dispose]()
  t.match(said, [
    { level: 40, msg: 'a request was refused', component: 'scanner', why: 'Unauthorized' },
    { level: 40, msg: 'a request was refused', component: 'kubelet' },
    { level: 40, msg: 'a request was refused', component: 'scanner', times: 4 },
  ])
  t.equal(said.length, 3)
})

void t.test('clients that change their names make no more lines', async (t) => {
  const { answers, said } = logged('info')
  for (let i = 0; i < 1_000; i++) answers.log(refused(401, `scanner${i}`))
  t.equal(said.length, 17)
  answers[Symbol.dispose]()
  t.equal(said.length, 18)
  t.match(said.at(-1), { component: 'scanner999', times: 983 }, 'the rest, and how many')
})

const answer = (resource: string, source: string, code = 200, path = '/x') => ({
  id: '1',
  method: 'GET',
  path,
  verb: 'list',
  resource,
  component: 'kubelet',
  code,
  source,
  ms: 1,
  ...detail,
})

void t.test('answers are counted by source, and the last one is kept', async (t) => {
  const counts = record()
  counts.add(answer('pods', 'cloud'))
  counts.add(answer('pods', 'cache'))
  counts.add(answer('pods', 'hub', 503))
  t.match(counts.counts, [
    {
      component: 'kubelet',
      verb: 'list',
      what: 'pods',
      cloud: 1,
      cache: 1,
      hub: 1,
      refused: 1,
      last: { source: 'hub', code: 503 },
    },
  ])
})

void t.test('what clients expect to be answered counts as no refusal', async (t) => {
  const counts = record()
  const answered = (verb: string, code: number): number => {
    counts.add({ ...answer(`${verb}-${code}`, 'cloud', code), verb })
    return counts.counts[0]?.refused ?? NaN
  }
  // A kubelet reads its lease before it creates it, and a watch that is too old is listed anew.
  const expected = [
    ['get', 404],
    ['list', 404],
    ['update', 409],
    ['watch', 410],
  ] as const
  for (const [verb, code] of expected) t.equal(answered(verb, code), 0, `${verb} ${code}`)
  const refusals = [
    ['patch', 404],
    ['get', 403],
    ['create', 422],
    ['list', 429],
    ['watch', 503],
  ] as const
  for (const [verb, code] of refusals) t.equal(answered(verb, code), 1, `${verb} ${code}`)
})

void t.test('the least recently used count is forgotten first', async (t) => {
  const counts = record()
  counts.add(answer('first', 'cloud'))
  counts.add(answer('second', 'cloud'))
  for (let at = 2; at < mostKinds; at++) counts.add(answer(`r${at}`, 'cloud'))
  counts.add(answer('first', 'cloud'))
  counts.add(answer('new', 'cloud'))
  const kept = new Set(counts.counts.map(({ what }) => what))
  t.equal(kept.size, mostKinds)
  t.notOk(kept.has('second'))
  t.ok(kept.has('first'))
})

void t.test('a path that a client makes long is cut', async (t) => {
  const counts = record()
  counts.add(answer('', 'hub', 404, `/${'x'.repeat(60_000)}`))
  t.ok((counts.counts[0]?.what.length ?? Infinity) <= 120)
})

const minuteLine = (at: number, source: string, code = 200, ms = 1) => ({
  verb: 'list',
  code,
  source,
  ms,
  isShort: true,
  at,
})

const minute = 60_000
const began = Date.parse('2026-11-21T12:00:30Z')

const hourOf = <T>(before: T, ...last: readonly T[]): readonly T[] => [
  ...Array.from({ length: 60 - last.length }, () => before),
  ...last,
]

void t.test('answers are counted by the minute, for an hour', async (t) => {
  const hour = new LastHour()
  hour.add(minuteLine(began, 'cloud'))
  hour.add(minuteLine(began + minute, 'cloud'))
  hour.add(minuteLine(began + minute, 'cache'))
  hour.add(minuteLine(began + 3 * minute, 'hub', 503))
  t.match(hour.minutes(began + 3 * minute), {
    cloud: hourOf(0, 1, 1, 0, 0),
    cache: hourOf(0, 0, 1, 0, 0),
    hub: hourOf(0, 0, 0, 0, 1),
    refused: hourOf(0, 0, 0, 0, 1),
  })
  t.strictSame(hour.minutes(began + 70 * minute).cloud, hourOf(0))
  // The clock was set back.
  hour.add(minuteLine(began - 500 * minute, 'hub'))
  t.equal(hour.minutes(began - 500 * minute).hub.at(-1), 1)
})

void t.test('of each minute it knows what 99 % of the short requests took', async (t) => {
  const hour = new LastHour()
  const p99 = (at: number): number => hour.minutes(at).p99Ms.at(-1) ?? 0
  for (let i = 0; i < 198; i++) hour.add(minuteLine(began, 'cloud', 200, 2))
  hour.add(minuteLine(began, 'cloud', 200, 900))
  t.equal(p99(began), 2)
  hour.add(minuteLine(began, 'cloud', 200, 900))
  hour.add(minuteLine(began, 'cloud', 200, 900))
  t.ok(p99(began) >= 900 && p99(began) < 1_000, 'never less, and about as much')
  hour.add({ ...minuteLine(began + minute, 'cloud', 200, 3_600_000), isShort: false })
  t.strictSame(hour.minutes(began + minute).p99Ms.slice(-3), [null, p99(began), null])
  for (const ms of [0, 1e9]) hour.add(minuteLine(began + 2 * minute, 'hub', 200, ms))
  t.ok(p99(began + 2 * minute) > 60_000, 'no duration is beyond the ring')
})

void t.test('samples show the link, and the most of what may become full', async (t) => {
  mock.timers.enable({ apis: ['Date', 'setInterval'], now: began })
  t.teardown(() => mock.timers.reset())
  const hour = new LastHour()
  t.strictSame(hour.saturation(began), {}, 'nothing is measured yet')
  let online: boolean | undefined
  let bytes = 0
  let peak = 0
  const gauge = { current: () => bytes, limit: () => 100 }
  using measuring = hour.measure({
    online: () => online,
    gauges: {
      seats: { ...gauge, most: () => peak },
      connections: gauge,
      secureConnections: gauge,
      memory: gauge,
      cache: gauge,
    },
  })
  t.strictSame(hour.minutes(Date.now()).online, hourOf(null), 'nothing is known of the link')
  ;[online, bytes, peak] = [true, 70, 90]
  mock.timers.tick(sampleMs)
  ;[bytes, peak] = [50, 0]
  mock.timers.tick(minute)
  t.match(hour.saturation(Date.now()), {
    seats: { current: 50, most: 90, limit: 100 },
    memory: { current: 50, most: 70, limit: 100 },
  })
  online = false
  hour.sample()
  online = true
  mock.timers.tick(sampleMs / 2)
  const { memoryBytes, online: link } = hour.minutes(Date.now())
  t.strictSame(link.slice(-3), [null, true, false], 'a short outage shows in its minute')
  t.strictSame(memoryBytes.slice(-3), [null, 70, 50])
  measuring[Symbol.dispose]()
  mock.timers.tick(61 * minute)
  t.equal(hour.saturation(Date.now()).seats?.most, 50, 'what is older than an hour is gone')
})
