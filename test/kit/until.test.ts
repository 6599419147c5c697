import t from 'tap'
import { Condition } from './condition.ts'
import { Hopeless, inTime, until } from './until.ts'

const seconds = 0.05

void t.test('a failed wait names its goal, the last state and the cause', async (t) => {
  let looks = 0
  const waiting = until('the pod to run', () => ++looks < 0, { seconds, describe: () => 'Pending' })
  await t.rejects(waiting, { message: 'waited 0.05 s for the pod to run; last seen: "Pending"' })
  t.ok(looks > 1)
  const cause = new Error('connection refused')
  const failing = until('an answer', () => Promise.reject(cause), { seconds })
  await t.rejects(failing, { message: 'waited 0.05 s for an answer', cause })
})

void t.test('a probe that answers, or cannot any more, ends it at once', async (t) => {
  let looks = 0
  t.equal(await until('the third look', () => ++looks === 3 && 'here'), 'here')
  const hopeless = until('it', () => Promise.reject(new Hopeless('it is gone')))
  await t.rejects(hopeless, { message: 'it is gone' })
})

void t.test('a timeout fails, and names its condition and place', async (t) => {
  const alive = setInterval(() => undefined, 1_000)
  t.teardown(() => clearInterval(alive))
  const never = new Promise<never>(() => undefined)
  const describe = (): string => 'nothing'
  const late = inTime('an event', never, { seconds, describe })
  await t.rejects(late, { message: 'waited 0.05 s for an event; last seen: "nothing"' })
  t.equal(await inTime('an event', Promise.resolve('it'), { seconds }), 'it')
  const condition = new Condition({ seconds })
  const wished: string[] = []
  const met = condition.until(() => wished.length > 0)
  await t.rejects(met, { message: 'waited 0.05 s for () => wished.length > 0' })
})

void t.test('a condition is checked whenever something has changed', async (t) => {
  const condition = new Condition()
  let count = 0
  const met = condition.seen(() => (count > 1 ? count : undefined))
  for (let i = 0; i < 2; i++) {
    count++
    condition.changed()
  }
  t.equal(await met, 2)
})
