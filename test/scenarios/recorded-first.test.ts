import { withInitialEvents } from '../kit/client.ts'
import t from 'tap'
import { documentResource } from '../../src/hub/store/document.ts'
import type { ObjectStore, Replacement } from '../../src/hub/store/store.ts'
import type { Answer, Client } from '../kit/client.ts'
import { pods, podsOfNode, serviceAccounts } from '../kit/cloud.ts'
import { startCloud } from '../kit/hub.ts'
import { startHubParts, type PartsHub } from '../kit/hub-parts.ts'

/** Lets what is kept wait, until it is let go, and says when somebody waits. */
class Gate {
  #open = Promise.withResolvers<void>()
  #waiting = Promise.withResolvers<void>()

  /** Resolves when a write has come to the gate. */
  get reached(): Promise<void> {
    return this.#waiting.promise
  }

  pass(): Promise<void> {
    this.#waiting.resolve()
    return this.#open.promise
  }

  letGo(): void {
    this.#open.resolve()
  }
}

/** The same store, whose commits of collections and of their changes wait at the gate. */
const held = (store: ObjectStore, gate: Gate): ObjectStore => ({
  get: (key) => store.get(key),
  list: (key) => store.list(key),
  version: (key) => store.version(key),
  newestVersion: (gvr) => store.newestVersion(gvr),
  withdraw: (holders, what) => store.withdraw(holders, what),
  partitions: (gvr, reader) => store.partitions(gvr, reader),
  copyOf: (key) => store.copyOf(key),
  collections: (audience, gvr, namespace) => store.collections(audience, gvr, namespace),
  holds: (key, object) => store.holds(key, object),
  put: async (key, gvk, object) => {
    if (key.gvr !== documentResource) await gate.pass()
    await store.put(key, gvk, object)
  },
  drop: () => store.drop(),
  forget: (key) => store.forget(key),
  replace(key): Replacement {
    const replacement = store.replace(key)
    return {
      add: (batch) => replacement.add(batch),
      commit: async (head) => {
        await gate.pass()
        await replacement.commit(head)
      },
      [Symbol.asyncDispose]: () => replacement[Symbol.asyncDispose](),
    }
  },
  apply: async (key, events, options) => {
    await gate.pass()
    return store.apply(key, events, options)
  },
  [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
})

/**
 * Another client is served meanwhile: whatever was going to be written without waiting has been
 * written.
 */
async function aRoundTrip(hub: PartsHub): Promise<void> {
  for (let i = 0; i < 3; i++) await hub.as('operator').get('/healthz')
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`a list's close waits for the store, its objects do not: ${encoding}`, async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a', 'b', 'c')
    const gate = new Gate()
    const hub = await startHubParts(t, { upstream: cloud, wrap: (store) => held(store, gate) })
    const whole = await cloud.as('kubelet', { encoding }).get(podsOfNode)
    const answer = await hub.as('kubelet', { encoding }).open(podsOfNode)
    let came = Buffer.alloc(0)
    answer.on('data', (chunk: Buffer) => (came = Buffer.concat([came, chunk])))
    await gate.reached
    await aRoundTrip(hub)
    t.match(came.toString('latin1'), 'registry.example/main:1', 'objects pass as they come')
    t.notOk(answer.complete)
    t.ok(came.length < whole.body.length, 'what closes the list has not come')
    const ended = new Promise((resolve) => answer.once('end', resolve))
    gate.letGo()
    await ended
    t.strictSame(came, whole.body)
  })

  void t.test(`an object waits for the store: ${encoding}`, async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a')
    const gate = new Gate()
    const hub = await startHubParts(t, { upstream: cloud, wrap: (store) => held(store, gate) })
    let came = false
    const answer = hub.as('kubelet', { encoding }).get('/api/v1/namespaces/default/pods/a')
    void answer.then(() => (came = true))
    await gate.reached
    await aRoundTrip(hub)
    t.notOk(came)
    gate.letGo()
    t.equal((await answer).status, 200)
  })

  void t.test(`the end of initial events waits for the store: ${encoding}`, async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a', 'b')
    const gate = new Gate()
    const hub = await startHubParts(t, { upstream: cloud, wrap: (store) => held(store, gate) })
    const watching = hub.as('kubelet', { encoding }).watch(podsOfNode, withInitialEvents)
    let bookmarked = false
    const events = watching.then((watch) => watch.take(3))
    void events.then(() => (bookmarked = true))
    await gate.reached
    await aRoundTrip(hub)
    t.notOk(bookmarked)
    gate.letGo()
    t.strictSame(
      (await events).map(({ type }) => type),
      ['ADDED', 'ADDED', 'BOOKMARK'],
    )
  })

  void t.test(`a watch event waits for the store: ${encoding}`, async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a')
    const gate = new Gate()
    let holding = false
    const hub = await startHubParts(t, {
      upstream: cloud,
      wrap: (store) => ({
        ...held(store, gate),
        apply: (key, events, options) =>
          (holding ? held(store, gate) : store).apply(key, events, options),
        replace: (key) => store.replace(key),
      }),
    })
    const kubelet = hub.as('kubelet', { encoding })
    const { resourceVersion } = await kubelet.list(podsOfNode)
    const watch = await kubelet.watch(podsOfNode, { resourceVersion })
    holding = true
    let came = false
    const event = watch.next()
    void event.then(() => (came = true))
    cloud.sandbox.delete(pods, 'a', 'default', { gracePeriodSeconds: 0 })
    await gate.reached
    await aRoundTrip(hub)
    t.notOk(came, 'no client sees a deletion that a crash would take back')
    gate.letGo()
    t.equal((await event)?.type, 'DELETED')
  })
}

const review = {
  apiVersion: 'authorization.k8s.io/v1',
  kind: 'SelfSubjectAccessReview',
  spec: { resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'default' } },
}
const reviews = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const tokens = '/api/v1/namespaces/default/serviceaccounts/default/token'
const tokenRequest = {
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenRequest',
  spec: { audiences: ['https://kubernetes.default.svc'], expirationSeconds: 3607 },
}

const whole: Readonly<Record<string, (client: Client) => Promise<Answer>>> = {
  'a document': (client) => client.get('/version'),
  'that an object is gone': (client) => client.get('/api/v1/namespaces/default/pods/gone'),
  'a token': (client) => client.send(tokens, { method: 'POST', body: tokenRequest }),
  'the answer to a review': (client) => client.send(reviews, { method: 'POST', body: review }),
}

for (const [what, ask] of Object.entries(whole)) {
  void t.test(`${what} waits for the store`, async (t) => {
    const cloud = await startCloud(t)
    cloud.sandbox.create(serviceAccounts, { metadata: { name: 'default', namespace: 'default' } })
    const gate = new Gate()
    const hub = await startHubParts(t, {
      upstream: cloud,
      wrap: (store) => ({
        ...held(store, gate),
        forget: async (key) => {
          await gate.pass()
          await store.forget(key)
        },
        put: async (key, gvk, object) => {
          await gate.pass()
          await store.put(key, gvk, object)
        },
      }),
    })
    let came = false
    const answer = ask(hub.as('kubelet'))
    void answer.then(() => (came = true))
    await gate.reached
    await aRoundTrip(hub)
    t.notOk(came)
    gate.letGo()
    t.ok((await answer).status < 500)
  })
}

void t.test(
  'a store that takes nothing does not stand between the cloud and its clients',
  async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a', 'b')
    const fails = (): Promise<never> => Promise.reject(new Error('the disk is full'))
    const hub = await startHubParts(t, {
      upstream: cloud,
      wrap: (store) => ({
        ...held(store, new Gate()),
        put: fails,
        apply: fails,
        replace: () => ({
          add: fails,
          commit: fails,
          [Symbol.asyncDispose]: async () => undefined,
        }),
      }),
    })
    const kubelet = hub.as('kubelet')
    const list = await kubelet.list(podsOfNode)
    t.strictSame(list.names, ['default/a', 'default/b'])
    t.equal((await kubelet.get('/api/v1/namespaces/default/pods/a')).status, 200)
    t.equal((await kubelet.get('/version')).status, 200)
    const watch = await kubelet.watch(podsOfNode, withInitialEvents)
    t.equal((await watch.take(3)).length, 3)
    cloud.addPods('c')
    t.equal((await watch.next())?.type, 'ADDED')
    t.ok(hub.storeFailures.length >= 4, 'each is reported')
  },
)
