import t from 'tap'
import { mock } from 'node:test'
import { now, turn } from '../../../src/base/clock.ts'
import { podsOf } from '../../../src/hub/boot/kubelet-cache.ts'
import { NodePods } from '../../../src/hub/boot/needs.ts'
import {
  Refresher,
  type RefreshOutcome,
  type RefreshRequest,
} from '../../../src/hub/boot/refresh.ts'
import type { GVR } from '../../../src/api/kube/gvk.ts'
import { csiNodes } from '../../../src/api/kube/resources.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { FakeKubeletCache } from './fake-kubelet-cache.ts'

const nodeName = 'edge-1'
const minute = 60_000

const core = (resource: string): GVR => ({ group: '', version: 'v1', resource })
const claimPath = '/api/v1/namespaces/plant/persistentvolumeclaims/data'
const secretUrl = '/api/v1/namespaces/plant/secrets?fieldSelector=metadata.name%3Dtls'
const secretPlace = {
  gvr: core('secrets'),
  namespace: 'plant',
  fieldSelector: 'metadata.name=tls',
}

const pod = (...sources: JsonObject[]): JsonObject => ({
  metadata: { name: 'press', namespace: 'plant', uid: 'u', resourceVersion: '5' },
  spec: { nodeName, volumes: sources.map((source, at) => ({ name: `v${at}`, ...source })) },
})
const claimSource = { persistentVolumeClaim: { claimName: 'data' } }
const secretSource = { secret: { secretName: 'tls' } }

/** A refresher whose time goes on only when a test says so. */
class World implements Disposable {
  readonly known: FakeKubeletCache
  readonly refresher: Refresher
  readonly asked: { url: string; at: number }[] = []
  readonly forbidden: string[] = []
  readonly failures: unknown[] = []
  online = true
  /** What the node's clock says. */
  time = Date.parse('2026-01-01')
  #passed = 0
  mostAtOnce = 0
  everyMs = 5 * minute
  readonly documents: RefreshRequest[] = []
  #atOnce = 0
  answer: (question: RefreshRequest) => RefreshOutcome | Promise<RefreshOutcome> = () => 'confirmed'

  constructor(...pods: JsonObject[]) {
    mock.timers.enable({ apis: ['setTimeout'] })
    mock.method(Date, 'now', () => this.time)
    mock.method(performance, 'now', () => this.#passed)
    this.known = new FakeKubeletCache('protobuf').list(podsOf(nodeName), 'Pod', pods)
    this.refresher = new Refresher({
      pods: new NodePods(nodeName),
      cache: () => this.known,
      documents: () => this.documents,
      request: (question) => this.#ask(question),
      online: () => this.online,
      everyMs: () => this.everyMs,
      onFailure: (cause) => this.failures.push(cause),
      onForbidden: ({ name }) => this.forbidden.push(name),
    })
  }

  async #ask(question: RefreshRequest): Promise<RefreshOutcome> {
    this.asked.push({ url: question.url, at: now() })
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce)
    await turn()
    const outcome = await this.answer(question)
    this.#atOnce--
    return outcome
  }

  urls(): string[] {
    return this.asked.map(({ url }) => url)
  }

  /** Lets time pass. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 250) {
      this.time += 250
      this.#passed += 250
      mock.timers.tick(250)
      for (let i = 0; i < 4; i++) await turn()
    }
  }

  [Symbol.dispose](): void {
    this.refresher[Symbol.dispose]()
    mock.timers.reset()
    mock.restoreAll()
  }
}

void t.test('a change of a status has nothing looked up', async (t) => {
  using world = new World(pod(secretSource))
  const { known } = world
  let [lookedUp, version] = [0, 5]
  known.collection = (query, ...how) => {
    if (query.gvr.resource === 'secrets') lookedUp += 1
    return FakeKubeletCache.prototype.collection.call(known, query, ...how)
  }
  const change = (...sources: JsonObject[]): void => {
    const changed = pod(...sources)
    const metadata = { ...(changed['metadata'] as JsonObject), resourceVersion: String(++version) }
    known.list(podsOf(nodeName), 'Pod', [{ ...changed, metadata }])
  }
  // Nothing is due meanwhile.
  world.everyMs = 100_000 * minute
  const csiNode = { apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', metadata: { name: nodeName } }
  known.put(csiNodes, '', nodeName, csiNode).list(secretPlace, 'Secret', [], now())
  world.refresher.cameOnline()
  await world.pass(2_000)
  const before = lookedUp
  t.ok(before > 0)
  for (let times = 0; times < 10; times++) {
    change(secretSource)
    await world.pass(1_000)
  }
  t.equal(lookedUp, before)
  change(secretSource, claimSource)
  await world.pass(2_000)
  t.ok(lookedUp > before)
  t.ok(world.urls().includes(claimPath))
})

void t.test('a confirmed object is requested again after its time', async (t) => {
  using world = new World(pod(claimSource))
  world.answer = ({ url }) => {
    if (url === claimPath) {
      world.known.put(core('persistentvolumeclaims'), 'plant', 'data', {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'data', namespace: 'plant' },
        spec: { volumeName: '' },
      })
    }
    return 'confirmed'
  }
  world.known.put(core('persistentvolumes'), '', 'pv', {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv' },
  })
  world.refresher.cameOnline()
  await world.pass(minute)
  const unbound = world.urls().filter((url) => url === claimPath).length
  t.ok(unbound >= 4 && unbound <= 8, `a claim that is not bound yet is requested soon: ${unbound}`)
  world.answer = () => 'confirmed'
  world.known.put(core('persistentvolumeclaims'), 'plant', 'data', {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'plant' },
    spec: { volumeName: 'pv' },
  })
  world.asked.length = 0
  await world.pass(60 * minute)
  const times = world.asked.flatMap(({ url, at }) => (url === claimPath ? [at] : []))
  t.ok(times.length >= 9 && times.length <= 15, `${times.length} times in an hour`)
})

void t.test('a watched collection is not requested until its bookmarks end', async (t) => {
  using world = new World(pod(secretSource))
  // More often than bookmarks come.
  world.everyMs = minute / 2
  const secret = { metadata: { name: 'tls', namespace: 'plant' } }
  world.refresher.cameOnline()
  for (let i = 0; i < 10; i++) {
    world.known.list(secretPlace, 'Secret', [secret], now())
    await world.pass(minute)
  }
  t.notOk(world.urls().includes(secretUrl))
  await world.pass(6 * minute)
  t.ok(world.urls().includes(secretUrl), 'and requested when its bookmarks end')
})

void t.test('an object that is not stored is requested ever less often', async (t) => {
  using world = new World(pod(claimSource))
  world.refresher.cameOnline()
  await world.pass(10 * minute)
  const tries = world.urls().filter((url) => url === claimPath).length
  t.ok(tries >= 5 && tries <= 8, `${tries} in ten minutes`)
})

void t.test('an interval that is set later counts at once', async (t) => {
  using world = new World(pod(secretSource))
  world.everyMs = 0
  world.refresher.cameOnline()
  await world.pass(5_000)
  t.strictSame(world.urls(), [])
  world.everyMs = minute
  await world.pass(5_000)
  t.ok(world.urls().includes(secretUrl))
})

void t.test('many objects are requested two at a time', async (t) => {
  const names = Array.from({ length: 40 }, (_, at) => ({ secret: { secretName: `s${at}` } }))
  using world = new World(pod(...names))
  world.refresher.cameOnline()
  await world.pass(15_000)
  t.equal(new Set(world.urls()).size, 41)
  t.equal(world.mostAtOnce, 2)
})

void t.test('a service account is requested only after the kubelet did', async (t) => {
  using world = new World({ ...pod(), spec: { nodeName, serviceAccountName: 'operator' } })
  const path = '/api/v1/namespaces/plant/serviceaccounts/operator'
  world.refresher.cameOnline()
  await world.pass(10 * minute)
  t.notOk(world.urls().includes(path))
  world.known.put(core('serviceaccounts'), 'plant', 'operator', {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'operator', namespace: 'plant' },
  })
  await world.pass(10 * minute)
  t.ok(world.urls().includes(path))
})

void t.test('a malformed claim keeps no other pod from being refreshed', async (t) => {
  const other = { name: 'saw', namespace: 'plant', uid: 'other', resourceVersion: '6' }
  using world = new World(pod(claimSource), { ...pod(secretSource), metadata: other })
  const claims = core('persistentvolumeclaims')
  world.known.put(claims, 'plant', 'data', {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'plant' },
    spec: { volumeName: 'v' },
  })
  const claim = world.known.object(claims, 'plant', 'data')
  if (typeof claim === 'object') claim.object.bytes.fill(0xff)
  world.refresher.cameOnline()
  await world.pass(5_000)
  t.ok(world.urls().includes(secretUrl))
  t.strictSame(world.failures, [])
})

void t.test('recorded discovery is requested again about once an hour', async (t) => {
  using world = new World()
  const accept = 'application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io'
  world.known.cachedDocuments.push({ url: '/apis', accept, confirmedAt: 0 })
  world.known.cachedDocuments.push({ url: '/openapi/v3', accept: '*/*', confirmedAt: 0 })
  const accepts: string[] = []
  world.answer = (question) => {
    if (question.url === '/apis') accepts.push(question.accept)
    return 'confirmed'
  }
  world.refresher.cameOnline()
  await world.pass(180 * minute)
  t.ok(accepts.length >= 3 && accepts.length <= 5, `${accepts.length} times in three hours`)
  t.strictSame([...new Set(accepts)], [accept])
  t.notOk(world.urls().includes('/openapi/v3'))
})

void t.test('a wanted document is requested though no client has read it', async (t) => {
  using world = new World()
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  const wanted = { url: '/apis', accept: `${accept},application/json` }
  world.documents.push(wanted, { url: '/openapi/v2', accept: 'application/json' })
  const accepts: string[] = []
  world.answer = (question) => {
    if (question.url === '/apis') accepts.push(question.accept)
    const { url } = question
    const stored = url === '/apis' ? accept : question.accept
    const known = world.known.cachedDocuments.some((each) => each.url === url)
    if (!known) world.known.cachedDocuments.push({ url, accept: stored, confirmedAt: now() })
    return 'confirmed'
  }
  world.refresher.cameOnline()
  await world.pass(180 * minute)
  t.ok(accepts.length >= 3 && accepts.length <= 5, `${accepts.length} times in three hours`)
  t.strictSame([...new Set(accepts)], [wanted.accept])
  t.equal(world.urls().filter((url) => url.startsWith('/openapi/')).length, 1, 'a schema seldom')
})

const schema = (name: string): RefreshRequest => ({
  url: `/openapi/v3/apis/${name}/v1`,
  accept: 'application/json',
})

void t.test('schemas are requested after all else, and then once a week', async (t) => {
  using world = new World(pod(claimSource, secretSource))
  const names = ['a', 'b', 'c', 'd']
  world.documents.push(...names.map(schema))
  world.answer = ({ url, accept }) => {
    if (url.startsWith('/openapi/'))
      world.known.cachedDocuments.push({ url, accept, confirmedAt: now() })
    return 'confirmed'
  }
  world.refresher.cameOnline()
  await world.pass(240 * minute)
  t.strictSame(
    world.urls().filter((url) => url.startsWith('/openapi/')),
    names.map((name) => schema(name).url),
  )
  t.ok(world.urls().indexOf(schema('a').url) >= 3, 'what pods refer to comes first')
})

void t.test('schemas are requested though statuses change all the time', async (t) => {
  using world = new World()
  world.documents.push(...['a', 'b', 'c', 'd'].map(schema))
  let version = 5
  world.answer = ({ url, accept }) => {
    const metadata = { ...(pod()['metadata'] as JsonObject), resourceVersion: String(++version) }
    world.known.list(podsOf(nodeName), 'Pod', [{ ...pod(), metadata }])
    world.known.cachedDocuments.push({ url, accept, confirmedAt: now() })
    return 'confirmed'
  }
  world.refresher.cameOnline()
  await world.pass(10_000)
  t.equal(world.urls().filter((url) => url.startsWith('/openapi/')).length, 4)
})

const years = 50 * 365 * 24 * 60 * minute

for (const [what, by] of [
  ['set back', -years],
  ['put forward', years],
] as const) {
  void t.test(
    `a clock that is ${what} neither ends the requests nor multiplies them`,
    async (t) => {
      using world = new World(pod(claimSource, secretSource))
      const volume = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv' } }
      world.known
        .put(core('persistentvolumeclaims'), 'plant', 'data', {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: { name: 'data', namespace: 'plant' },
          spec: { volumeName: 'pv' },
        })
        .put(core('persistentvolumes'), '', 'pv', volume)
        .list(secretPlace, 'Secret', [], now())
      world.refresher.cameOnline()
      await world.pass(10 * minute)
      world.asked.length = 0
      world.time += by
      await world.pass(20 * minute)
      for (const url of [claimPath, secretUrl]) {
        const times = world.urls().filter((each) => each === url).length
        t.ok(times >= 2 && times <= 5, `${url}: ${times} times in twenty minutes`)
      }
    },
  )
}
