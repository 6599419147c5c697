import { mock } from 'node:test'
import t from 'tap'
import { LastHour, sampleMs } from '../../../src/hub/wiring/last-hour.ts'

const line = (at: number, source: string, code = 200, ms = 1) => ({
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
  hour.add(line(began, 'cloud'))
  hour.add(line(began + minute, 'cloud'))
  hour.add(line(began + minute, 'cache'))
  hour.add(line(began + 3 * minute, 'hub', 503))
  t.match(hour.minutes(began + 3 * minute), {
    cloud: hourOf(0, 1, 1, 0, 0),
    cache: hourOf(0, 0, 1, 0, 0),
    hub: hourOf(0, 0, 0, 0, 1),
    refused: hourOf(0, 0, 0, 0, 1),
  })
  t.strictSame(hour.minutes(began + 70 * minute).cloud, hourOf(0))
  // The clock was set back.
  hour.add(line(began - 500 * minute, 'hub'))
  t.equal(hour.minutes(began - 500 * minute).hub.at(-1), 1)
})

void t.test('of each minute it knows what 99 % of the short requests took', async (t) => {
  const hour = new LastHour()
  const p99 = (at: number): number => hour.minutes(at).p99Ms.at(-1) ?? 0
  for (let i = 0; i < 198; i++) hour.add(line(began, 'cloud', 200, 2))
  hour.add(line(began, 'cloud', 200, 900))
  t.equal(p99(began), 2)
  hour.add(line(began, 'cloud', 200, 900))
  hour.add(line(began, 'cloud', 200, 900))
  t.ok(p99(began) >= 900 && p99(began) < 1_000, 'never less, and about as much')
  hour.add({ ...line(began + minute, 'cloud', 200, 3_600_000), isShort: false })
  t.strictSame(hour.minutes(began + minute).p99Ms.slice(-3), [null, p99(began), null])
  for (const ms of [0, 1e9]) hour.add(line(began + 2 * minute, 'hub', 200, ms))
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
