import t from 'tap'
import { elapsed } from '../../../src/base/clock.ts'
import { OutlierDetector, type OutlierRules } from '../../../src/hub/upstream/upstream-health.ts'

interface Recorded {
  readonly record: OutlierDetector
  /** Lengths of ejections. */
  readonly ejections: number[]
  /** Requests one after the other that fail. */
  readonly fail: (times: number) => void
}

function recorded(rules: Partial<OutlierRules> = {}): Recorded {
  const ejections: number[] = []
  const record = new OutlierDetector(
    { ejectMs: 1_000_000, slowStartMs: 1_000_000, ...rules },
    (forMs) => ejections.push(forMs),
  )
  return {
    record,
    ejections,
    fail: (times) => {
      for (let i = 0; i < times; i++) record.failed(elapsed())
    },
  }
}

void t.test('five failures in a row eject, fewer do not', async (t) => {
  const { record, ejections, fail } = recorded()
  fail(4)
  record.answered()
  fail(4)
  t.equal(record.ejected, false)
  fail(1)
  t.equal(record.ejected, true)
  t.equal(ejections.length, 1)
  t.ok(record.ejectedForMs > 800_000)
})

void t.test('a failure of every second request ejects', async (t) => {
  const { record, fail } = recorded()
  for (let i = 0; i < 9; i++) {
    record.answered()
    fail(1)
  }
  t.equal(record.ejected, false)
  record.answered()
  fail(1)
  t.equal(record.ejected, true)
})

void t.test('requests that were under way together fail once', async (t) => {
  const { record } = recorded()
  const together = elapsed()
  for (let i = 0; i < 100; i++) record.failed(together)
  t.equal(record.ejected, false)
})

void t.test('each ejection is about twice as long as the one before, up to a limit', async (t) => {
  // By a clock of its own: after longer than the limit without one the next ejection is a first
  // again.
  let now = 0
  t.capture(performance, 'now', () => now)
  const ejectMs = 20
  const { record, ejections, fail } = recorded({ ejectMs })
  for (let i = 0; i < 7; i++) {
    now += record.ejectedForMs + 1
    t.notOk(record.ejected)
    fail(5)
  }
  t.strictSame(
    ejections.map((forMs) => Math.round(Math.log2(forMs / ejectMs))),
    [0, 1, 2, 3, 4, 5, 5],
  )
  now += record.ejectedForMs + 31 * ejectMs
  fail(5)
  t.equal(
    Math.round(Math.log2((ejections.at(-1) ?? 0) / ejectMs)),
    0,
    'and forgotten after a while',
  )
})

void t.test('outcomes of requests during an ejection do not count', async (t) => {
  const { record, ejections, fail } = recorded()
  fail(50)
  t.equal(ejections.length, 1)
  record.begin()
  fail(4)
  t.equal(ejections.length, 1)
})

void t.test('slow start follows an ejection, and the begin of a tenure', async (t) => {
  const { record, fail } = recorded()
  fail(5)
  t.equal(record.slowStartWeight, 0)
  record.begin()
  t.equal(record.ejected, false, 'it was gone, and is back')
  t.ok(record.slowStartWeight < 0.01)
  const quick = recorded({ slowStartMs: 0 })
  quick.record.begin()
  t.equal(quick.record.slowStartWeight, 1)
})
