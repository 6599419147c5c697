import t, { type Test as Tap } from 'tap'
import { onAbort } from '../../../../src/base/abort.ts'
import { tokenHolder } from '../../../../src/api/request/identity.ts'
import type { Exchange, Reply } from '../../../../src/http/exchange/exchange.ts'
import { setImmediate as turn } from 'node:timers/promises'
import { mock } from 'node:test'
import type { WatchEvent } from '../../../../src/api/codec/watch.ts'
import type { UpstreamHandlers } from '../../../../src/hub/cache/cacher/stored-lister-watcher.ts'
import { Cachers, listedMs } from '../../../../src/hub/cache/cacher/cachers.ts'
import type { CollectionKey, ObjectStore, StoredList } from '../../../../src/hub/store/store.ts'
import { claimOf, emptyReply, exchangeOf, type ExchangeOptions } from '../../../kit/exchange.ts'
import { watchReply } from '../../../kit/watch-reply.ts'

const pods = '/api/v1/namespaces/default/pods?watch=true'

const object = {
  namespace: 'default',
  name: 'a',
  uid: 'u',
  resourceVersion: '40',
  bytes: Buffer.from('{}'),
}

const stored = (): StoredList => ({
  gvk: { group: '', version: 'v1', kind: 'PodList' },
  resourceVersion: '50',
  changedAt: '48',
  extra: '',
  confirmedAt: 0,
  batches: [{ objects: [object] }],
})

/** A store with one collection. */
const storeOf = (): ObjectStore =>
  ({
    copyOf: (key: unknown) => key,
    version: () => '50',
    apply: async () => [],
    confirmedAt: () => 0,
    list: stored,
  }) as unknown as ObjectStore

interface Opened {
  readonly recovered: AbortController
  readonly client: AbortController
  /** What has been said since the last time. */
  said(): Promise<WatchEvent[]>
  /** Whether it is over. */
  over(): Promise<boolean>
}

const silent = ({ signal }: Exchange): Promise<never> =>
  new Promise((_resolve, reject) => {
    onAbort(signal, () => reject(new Error('the request is over')))
  })

/**
 * Cachers that reach an API server from when `recovered` aborts; it then says nothing, or what
 * `ways` say.
 */
const cachersOf = (
  store: ObjectStore,
  recovered: AbortSignal,
  leastMs: number,
  recorded: UpstreamHandlers['recorded'] = silent,
): Cachers =>
  new Cachers({
    store,
    upstream: { recorded, decoded: recorded },
    recorder: {
      recordsWatch: () => true,
      hooks: {
        countOf: () => ({ amount: 0 }),
        onStoreFailure: () => undefined,
        onMalformed: () => undefined,
        onEvent: () => undefined,
        onUnpacked: () => undefined,
      },
    },
    comparesEvents: () => false,
    connectivity: () => ({
      online: () => recovered.aborted,
      changed: () => (recovered.aborted ? new AbortController().signal : recovered),
    }),
    leastMs,
    mostBytes: 1024 ** 2,
    hooks: {
      onUpstreamWatches: () => undefined,
      onWatchers: () => undefined,
      onWatcherEnded: () => undefined,
      onFailed: () => undefined,
    },
  })

/** A watch of the cache on a clock that the test moves. */
function open(
  t: Tap,
  url: string,
  leastMs = 1_800_000,
  store = storeOf(),
  described: ExchangeOptions = {},
): Opened {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  t.teardown(() => mock.timers.reset())
  let now = 0
  mock.method(performance, 'now', () => now)
  t.teardown(() => mock.restoreAll())
  const tick = mock.timers.tick.bind(mock.timers)
  mock.method(mock.timers, 'tick', (ms: number) => {
    now += ms
    tick(ms)
  })
  const [recovered, client] = [new AbortController(), new AbortController()]
  const exchange = exchangeOf(url, { ...described, signal: client.signal })
  if (!exchange.info.isResource) throw new Error(`${url} is no watch`)
  const cachers = cachersOf(store, recovered.signal, leastMs)
  t.teardown(() => cachers[Symbol.asyncDispose]())
  const watch = cachers.offline(exchange, exchange.info)
  if (!watch) throw new Error(`nothing is stored of ${url}`)
  const { events } = watch
  const all: WatchEvent[] = []
  let ended = false
  void (async () => {
    for await (const group of events) all.push(...group)
    ended = true
  })()
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) await turn()
  }
  return {
    recovered,
    client,
    said: async () => {
      await settle()
      return all.splice(0)
    },
    over: async () => {
      await settle()
      return ended
    },
  }
}

const types = (events: readonly WatchEvent[]): string[] => events.map(({ type }) => type)

void t.test(
  'a client that allows bookmarks gets one each minute, at the stored version',
  async (t) => {
    const watch = open(t, `${pods}&resourceVersion=50&allowWatchBookmarks=true`)
    await watch.said()
    mock.timers.tick(59_999)
    t.strictSame(await watch.said(), [])
    for (let minute = 0; minute < 3; minute++) {
      mock.timers.tick(minute === 0 ? 1 : 60_000)
      t.strictSame(await watch.said(), [
        { type: 'BOOKMARK', resourceVersion: '50', initialEventsEnd: false },
      ])
    }
    watch.client.abort()
    t.ok(await watch.over())
  },
)

void t.test('the last bookmark comes two seconds before the end', async (t) => {
  const watch = open(t, `${pods}&resourceVersion=50&allowWatchBookmarks=true&timeoutSeconds=90`)
  await watch.said()
  mock.timers.tick(60_000)
  t.strictSame(types(await watch.said()), ['BOOKMARK'])
  mock.timers.tick(27_999)
  t.strictSame(await watch.said(), [])
  mock.timers.tick(1)
  t.strictSame(await watch.said(), [
    { type: 'BOOKMARK', resourceVersion: '50', initialEventsEnd: false },
  ])
  mock.timers.tick(2_000)
  t.strictSame(await watch.said(), [])
  t.ok(await watch.over())
})

void t.test('a watch ends at its timeoutSeconds', async (t) => {
  const watch = open(t, `${pods}&resourceVersion=50&timeoutSeconds=300`)
  await watch.said()
  mock.timers.tick(299_999)
  t.notOk(await watch.over())
  mock.timers.tick(1)
  t.ok(await watch.over())
})

void t.test(
  'without timeoutSeconds a watch runs as long as configured, and at most twice that',
  async (t) => {
    const watch = open(t, `${pods}&resourceVersion=50`, 60_000)
    await watch.said()
    mock.timers.tick(59_999)
    t.notOk(await watch.over())
    mock.timers.tick(60_001)
    t.ok(await watch.over())
  },
)

void t.test('a watch stays open when the cloud is back', async (t) => {
  const watch = open(t, `${pods}&resourceVersion=50&timeoutSeconds=300`)
  await watch.said()
  watch.recovered.abort()
  mock.timers.tick(299_000)
  t.notOk(await watch.over())
  mock.timers.tick(1_000)
  t.ok(await watch.over())
})

/** Events of so many bytes each, in the collection of a namespace. */
const eventsOf = (namespace: string, count: number): WatchEvent[] =>
  Array.from({ length: count }, (_, i) => ({
    type: 'ADDED',
    object: {
      ...object,
      namespace,
      name: `${i}`,
      resourceVersion: String(51 + i),
      bytes: Buffer.alloc(300_000),
    },
  }))

void t.test('the collections with the most events drop theirs first', async (t) => {
  const store: ObjectStore = {
    ...storeOf(),
    version: ({ namespace = '' }) => (watched.has(namespace) ? '60' : '50'),
  }
  const watched = new Set<string>()
  const sent = new Map<string, WatchEvent[]>([
    ['many', eventsOf('many', 3)],
    ['few', eventsOf('few', 1)],
  ])
  const recorded = async ({
    url,
    info,
    representations: [representation],
  }: Exchange): Promise<Reply> => {
    if (!info.isResource || !representation || !url.includes('resourceVersion=50'))
      throw new Error('no more')
    watched.add(info.namespace ?? '')
    return watchReply(
      representation,
      'Pod',
      (async function* () {
        yield sent.get(info.namespace ?? '') ?? []
      })(),
    )
  }
  await using cachers = cachersOf(store, AbortSignal.abort(), 60_000, recorded)
  const eventsIn = async (namespace: string): Promise<string[]> => {
    const url = `/api/v1/namespaces/${namespace}/pods?watch=true&resourceVersion=50`
    const reply = await cachers.online(exchangeOf(url), () => Promise.reject(new Error('passed')))
    if (reply.kind !== 'watch') throw new Error('no watch')
    for await (const events of reply.events) {
      return events.map((event) => ('object' in event ? event.object.name : event.type))
    }
    return []
  }
  t.strictSame(await eventsIn('many'), ['0', '1', '2'])
  t.strictSame(await eventsIn('few'), ['0'])
  t.equal(cachers.bytes, 300_256, 'of the few alone')
})

void t.test('a collection has one upstream watch, however slowly it opens', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const underWay = new Set<Exchange>()
  await using cachers = cachersOf(storeOf(), AbortSignal.abort(), 60_000, (exchange) => {
    underWay.add(exchange)
    return silent(exchange).finally(() => underWay.delete(exchange))
  })
  const pass = async (ms: number): Promise<void> => {
    mock.timers.tick(ms)
    for (let i = 0; i < 5; i++) await turn()
  }
  const heard: WatchEvent[] = []
  const watch = async (): Promise<void> => {
    const reply = await cachers.online(exchangeOf(`${pods}&resourceVersion=50`), silent)
    if (reply.kind !== 'watch') throw new Error('no watch')
    for await (const events of reply.events) heard.push(...events)
  }
  // Its client has gone before its watch begins.
  void cachers.online(exchangeOf(`${pods}&resourceVersion=50`), silent)
  await pass(1_500)
  void watch()
  // It would be idle for too long, had no client come.
  await pass(1_000)
  void watch()
  await pass(1_000)
  t.strictSame(heard, [], 'no one has to list')
  t.equal(underWay.size, 1)
  t.equal(cachers.all.length, 1)
})

/** Whether a watch from version 50 passes to the API server; else it is answered with 410. */
async function passes(cachers: Cachers, url: string, described: ExchangeOptions = {}) {
  let passed = false
  const exchange = exchangeOf(`${url}?watch=true&resourceVersion=50`, described)
  const reply = await cachers
    .online(exchange, async () => {
      passed = true
      throw new Error('passed')
    })
    .catch(() => undefined)
  if (reply?.kind !== 'watch') return passed
  for await (const events of reply.events)
    t.match(events, [{ type: 'ERROR', status: { code: 410 } }])
  return passed
}

const lost = { ...storeOf(), version: () => undefined } as ObjectStore

void t.test('a collection that is still not stored is to be listed again in an hour', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  let now = performance.now()
  mock.method(performance, 'now', () => now)
  t.teardown(() => mock.restoreAll())
  await using cachers = cachersOf(lost, AbortSignal.abort(), 60_000)
  const all: boolean[] = []
  for (const ms of [0, listedMs / 2 - 1, listedMs / 2 + 1]) {
    now += ms
    mock.timers.tick(ms)
    all.push(await passes(cachers, '/api/v1/pods'))
  }
  t.strictSame(all, [false, true, false])
})

void t.test('a watch of a person passes where nothing is stored for it', async (t) => {
  await using cachers = cachersOf(lost, AbortSignal.abort(), 60_000)
  t.ok(await passes(cachers, '/api/v1/pods', { headers: { 'User-Agent': 'kubectl/v1.36.0' } }))
})

void t.test(
  'a cacher reads as the component of its client: the records of kubectl stay marked as its own',
  async (t) => {
    const store = { ...storeOf(), version: () => '60' } as ObjectStore
    const read = Promise.withResolvers<Exchange>()
    await using cachers = cachersOf(store, AbortSignal.abort(), 60_000, (exchange) => {
      read.resolve(exchange)
      return silent(exchange)
    })
    const client = new AbortController()
    const described = { headers: { 'User-Agent': 'kubectl/v1.36.0' }, signal: client.signal }
    const exchange = exchangeOf(`${pods}&resourceVersion=50`, described)
    void cachers.online(exchange, () => silent(exchange)).catch(() => undefined)
    t.equal((await read.promise).component, 'kubectl')
    client.abort()
  },
)

void t.test('of two callers that watch at once, the API server decides on both', async (t) => {
  const asked: unknown[] = []
  const refused = { ...emptyReply, status: 403 }
  const forward = async ({ identity }: Exchange): Promise<Reply> => {
    asked.push(identity)
    return refused
  }
  const recorded = async (exchange: Exchange): Promise<Reply> => {
    asked.push(exchange.identity)
    const [representation] = exchange.representations
    if (!representation) throw new Error('in none')
    const events = async function* (): AsyncGenerator<readonly WatchEvent[]> {
      yield await silent(exchange)
    }
    return watchReply(representation, 'Pod', events())
  }
  const copyOf = (key: CollectionKey) => ({ ...key, partition: { ...key.partition, identity: '' } })
  const store = { ...storeOf(), copyOf } as ObjectStore
  await using cachers = cachersOf(store, AbortSignal.abort(), 60_000, recorded)
  const watch = (token: string): Promise<Reply> => {
    const exchange = exchangeOf(`${pods}&resourceVersion=50`, {
      headers: { Authorization: `Bearer ${token}` },
    })
    const identity = tokenHolder(token)
    const proven = {
      ...exchange,
      identity,
      credential: 'caller',
      claim: claimOf({ holds: () => true }),
    }
    return cachers.online(proven as Exchange, forward)
  }
  const [first, second] = await Promise.all([watch('one'), watch('two')])
  if (first.kind === 'watch') void first.events[Symbol.asyncIterator]().next()
  await turn()
  t.strictSame([first.kind, second], ['watch', refused])
  t.strictSame(new Set(asked), new Set([tokenHolder('one'), tokenHolder('two')]))
})
