import t from 'tap'
import { Cloud, type BalanceMode } from '../../src/remote/cloud.ts'
import { Upstream } from '../../src/remote/upstream.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { patientRules, Probes, type Health } from './probes.ts'

interface Clouded {
  readonly cloud: Cloud
  readonly probes: Probes
  /** Each change as it was told. */
  readonly told: boolean[]
  /** Probes an upstream, which answers so. */
  readonly say: (name: string, health: 'good' | 'bad') => Promise<void>
}

function cloudOf(
  t: Teardown,
  first: Record<string, Health>,
  mode: BalanceMode = 'round-robin',
): Clouded {
  const probes = new Probes()
  const told: boolean[] = []
  for (const [name, health] of Object.entries(first)) probes.set(name, health)
  const cloud = new Cloud(
    (onVerdict) =>
      Object.keys(first).map(
        (name) =>
          new Upstream(
            name,
            probes.probe,
            { ...patientRules, failedRetry: 1, healthyThreshold: 1 },
            onVerdict,
          ),
      ),
    mode,
    (online) => told.push(online),
  )
  t.teardown(() => cloud[Symbol.dispose]())
  return {
    cloud,
    probes,
    told,
    say: async (name, health) => {
      probes.set(name, health)
      await cloud.upstreams.find(({ origin }) => origin === name)?.probe()
    },
  }
}

const names = (cloud: Cloud): string[] => cloud.candidates().map(({ origin }) => origin)

void t.test('one good answer is enough to be online, though others keep silent', async (t) => {
  const { cloud, told } = cloudOf(t, { a: 'silent', b: 'good' })
  t.equal(cloud.online, undefined)
  await cloud.settled()
  t.equal(cloud.online, true)
  t.strictSame(told, [true])
  t.strictSame(names(cloud), ['b'])
})

void t.test('one bad answer is not enough to be offline: the others are waited for', async (t) => {
  const { cloud, probes, told, say } = cloudOf(t, { a: 'bad', b: 'silent' })
  let settled = false
  void cloud.settled().then(() => {
    settled = true
  })
  await say('a', 'bad')
  t.equal(cloud.online, undefined)
  t.equal(settled, false)
  probes.set('b', 'bad')
  await cloud.settled()
  t.equal(cloud.online, false)
  t.strictSame(told, [false])
  t.strictSame(names(cloud), [])
})

void t.test('without any upstream the first verdict is not waited for', async (t) => {
  const { cloud } = cloudOf(t, {})
  await cloud.settled()
  t.strictSame(names(cloud), [])
})

void t.test('online lasts as long as anybody is healthy', async (t) => {
  const { cloud, told, say } = cloudOf(t, { a: 'good', b: 'good' })
  await cloud.settled()
  await say('a', 'bad')
  t.equal(cloud.online, true)
  await say('b', 'bad')
  t.equal(cloud.online, false)
  await say('b', 'good')
  await say('a', 'good')
  t.strictSame(told, [true, false, true])
})

void t.test(
  'a spell ends when online becomes offline or the reverse, and at no other time',
  async (t) => {
    const { cloud, say } = cloudOf(t, { a: 'good', b: 'good' })
    await cloud.settled()
    await say('b', 'good')
    const online = cloud.spell
    await say('a', 'bad')
    t.equal(online.aborted, false)
    const before = cloud.since
    await say('b', 'bad')
    t.equal(online.aborted, true)
    t.ok(cloud.since >= before)
    const offline = cloud.spell
    t.equal(offline.aborted, false)
    await say('a', 'bad')
    t.equal(offline.aborted, false)
    await say('a', 'good')
    t.equal(offline.aborted, true)
  },
)

void t.test('who is woken by the end of a spell sees the new one', async (t) => {
  const { cloud, say } = cloudOf(t, { a: 'bad' })
  await cloud.settled()
  const seen: unknown[] = []
  cloud.spell.addEventListener('abort', () => seen.push(cloud.online, cloud.spell.aborted))
  await say('a', 'good')
  t.strictSame(seen, [true, false])
})

void t.test(
  'round robin begins with another healthy upstream each time, and names each once',
  async (t) => {
    const { cloud, say } = cloudOf(t, { a: 'good', b: 'good', c: 'good' })
    for (const name of ['a', 'b', 'c']) await say(name, 'good')
    const orders = [names(cloud), names(cloud), names(cloud), names(cloud)]
    t.strictSame(new Set(orders.slice(0, 3).map(([first]) => first)), new Set(['a', 'b', 'c']))
    t.strictSame(orders[3], orders[0])
    for (const order of orders) t.strictSame([...order].sort(), ['a', 'b', 'c'])
    await say('b', 'bad')
    t.strictSame(new Set([names(cloud)[0], names(cloud)[0]]), new Set(['a', 'c']))
  },
)

void t.test('by priority the first healthy upstream is asked first, always', async (t) => {
  const { cloud, say } = cloudOf(t, { a: 'good', b: 'good', c: 'good' }, 'priority')
  for (const name of ['a', 'b', 'c']) await say(name, 'good')
  t.strictSame(
    [names(cloud), names(cloud)],
    [
      ['a', 'b', 'c'],
      ['a', 'b', 'c'],
    ],
  )
  await say('a', 'bad')
  t.strictSame(names(cloud), ['b', 'c'])
  await say('a', 'good')
  t.strictSame(names(cloud), ['a', 'b', 'c'])
})

void t.test('disposing of the cloud ends the tenure of each upstream', async (t) => {
  const { cloud } = cloudOf(t, { a: 'good', b: 'good' })
  await cloud.settled()
  cloud[Symbol.dispose]()
  t.strictSame(
    cloud.upstreams.map(({ tenure }) => tenure.aborted),
    [true, true],
  )
})
