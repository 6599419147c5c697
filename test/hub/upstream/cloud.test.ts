import t from 'tap'
import { Cloud } from '../../../src/hub/upstream/cloud.ts'
import { Upstream } from '../../../src/hub/upstream/upstream.ts'
import { asker } from './askers.ts'
import type { Teardown } from '../../kit/wire/wire.ts'
import { patientRules, Probes, type Health } from './probes.ts'

interface Clouded {
  readonly cloud: Cloud
  readonly probes: Probes
  /** Each change as it was reported. */
  readonly told: boolean[]
  /** Who failed or was removed. */
  readonly gone: string[]
  /** Probes an upstream, which answers so. */
  readonly say: (name: string, health: Health) => Promise<void>
}

function cloudOf(t: Teardown, first: Record<string, Health>): Clouded {
  const probes = new Probes()
  const told: boolean[] = []
  const gone: string[] = []
  for (const [name, health] of Object.entries(first)) probes.set(name, health)
  const cloud = new Cloud({
    origins: Object.keys(first),
    build: (origin, onHealth) => new Upstream(origin, probes.probe, decisive, { onHealth }),
    mode: 'priority',
    onOnline: (online) => told.push(online),
    onGone: (origin) => gone.push(origin),
  })
  t.teardown(() => cloud[Symbol.dispose]())
  return {
    cloud,
    probes,
    told,
    gone,
    say: async (name, health) => {
      probes.set(name, health)
      await cloud.upstreams.find(({ origin }) => origin === name)?.probe()
    },
  }
}

const decisive = { ...patientRules, failedRetry: 1, healthyThreshold: 1 }

const names = (cloud: Cloud): string[] => cloud.attemptOrder(asker()).map(({ origin }) => origin)

void t.test('one good answer is enough to be online, though others keep silent', async (t) => {
  const { cloud, told } = cloudOf(t, { a: 'silent', b: 'good' })
  t.equal(cloud.online, undefined)
  await cloud.onlineKnown()
  t.equal(cloud.online, true)
  t.strictSame(told, [true])
  t.strictSame(names(cloud), ['b'])
})

void t.test('one bad answer is not enough to be offline: the others are waited for', async (t) => {
  const { cloud, probes, told, say } = cloudOf(t, { a: 'bad', b: 'silent' })
  let settled = false
  void cloud.onlineKnown().then(() => {
    settled = true
  })
  await say('a', 'bad')
  t.equal(cloud.online, undefined)
  t.equal(settled, false)
  probes.set('b', 'bad')
  await cloud.onlineKnown()
  t.equal(cloud.online, false)
  t.strictSame(told, [false])
  t.strictSame(names(cloud), [])
})

void t.test('without any upstream the first verdict is not waited for', async (t) => {
  const { cloud } = cloudOf(t, {})
  await cloud.onlineKnown()
  t.strictSame(names(cloud), [])
})

void t.test('the hub is online as long as any upstream is healthy', async (t) => {
  const { cloud, told, say } = cloudOf(t, { a: 'good', b: 'good' })
  await cloud.onlineKnown()
  await say('a', 'bad')
  t.equal(cloud.online, true)
  await say('b', 'bad')
  t.equal(cloud.online, false)
  await say('b', 'good')
  await say('a', 'good')
  t.strictSame(told, [true, false, true])
})

void t.test('an API server that is not ready counts as online, and is tried last', async (t) => {
  const { cloud, told, say } = cloudOf(t, { a: 'unready', b: 'bad' })
  await cloud.onlineKnown()
  t.equal(cloud.online, true)
  t.strictSame(names(cloud), ['a'])
  await say('b', 'good')
  t.strictSame(names(cloud), ['b', 'a'])
  await say('b', 'bad')
  await say('a', 'bad')
  t.strictSame(told, [true, false])
})

void t.test(
  'new addresses: kept upstreams stay, removed ones end, added ones are probed',
  async (t) => {
    const { cloud, gone, told, say } = cloudOf(t, { a: 'good', b: 'good' })
    await say('a', 'good')
    await say('b', 'good')
    const [a, b] = cloud.upstreams
    cloud.replace(['c', 'b', 'c'])
    t.equal(cloud.upstreams[1], b)
    t.equal(b?.isGone, false)
    t.equal(a?.isGone, true)
    t.strictSame(gone, ['a'])
    t.strictSame(names(cloud), ['b'])
    await cloud.anyAnswers()
    await say('c', 'good')
    t.strictSame(names(cloud), ['c', 'b'])
    t.strictSame(told, [true])
  },
)

void t.test('other addresses altogether: online and offline wait for what they say', async (t) => {
  const { cloud, probes, told, say } = cloudOf(t, { a: 'good' })
  await cloud.onlineKnown()
  probes.set('b', 'silent')
  cloud.replace(['b'])
  t.equal(cloud.online, true)
  t.strictSame(names(cloud), [])
  await say('b', 'bad')
  t.equal(cloud.online, false)
  cloud.replace(['a'])
  await say('a', 'good')
  t.strictSame(told, [true, false, true])
})

void t.test('an empty list of addresses changes nothing (F13)', async (t) => {
  const { cloud } = cloudOf(t, { a: 'good' })
  await cloud.onlineKnown()
  cloud.replace([])
  t.strictSame(names(cloud), ['a'])
})
