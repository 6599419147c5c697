import t from 'tap'
import { Cacher } from '../../../../src/hub/cache/cacher/cacher.ts'
import { everything, selectionOf } from '../../../../src/api/codec/selection.ts'
import { expired } from '../../../../src/api/kube/status.ts'
import { turn } from '../../../../src/base/clock.ts'
import { onAbort, type AbortSignalLike } from '../../../../src/base/abort.ts'
import type { UpstreamHandlers } from '../../../../src/hub/cache/cacher/stored-lister-watcher.ts'
import type { ObjectEvent, WatchEvent } from '../../../../src/api/codec/watch.ts'
import type { Exchange, Reply } from '../../../../src/http/exchange/exchange.ts'
import { objectRepresentation } from '../../../../src/api/request/representation.ts'
import { nodeIdentity } from '../../../../src/api/request/identity.ts'
import type { GVR } from '../../../../src/api/kube/gvk.ts'
import { listReply } from '../../../../src/hub/answers/replies.ts'
import type { ApplyOptions, ObjectStore } from '../../../../src/hub/store/store.ts'
import { services } from '../../../kit/cloud.ts'
import { watchReply } from '../../../kit/watch-reply.ts'
import { inTime } from '../../../kit/until.ts'

// The clock's timers keep no process alive.
const alive = setInterval(() => undefined, 1_000)
t.teardown(() => clearInterval(alive))

const representation = objectRepresentation('json')
const key = {
  partition: { identity: nodeIdentity, representation: representation.key },
  gvr: services,
  labelSelector: '',
  fieldSelector: '',
}

const added = (version: string): ObjectEvent => ({
  type: 'ADDED',
  object: {
    namespace: 'default',
    name: `at-${version}`,
    uid: 'uid',
    resourceVersion: version,
    bytes: Buffer.from('{}'),
  },
})

const untilOver = <T>(signal: AbortSignalLike): Promise<T> =>
  new Promise((_, reject) => {
    onAbort(signal, () => reject(new Error('the request is over')))
  })

const watch = {
  from: '10',
  selection: everything,
  bookmarks: false,
  lastsMs: 60_000,
}

const cacherOf = (
  store: ObjectStore,
  recorded: UpstreamHandlers['recorded'],
  onFailed: (gvr: GVR, cause: unknown) => void = () => undefined,
  idle: { readonly idleMs: number; readonly onIdle?: () => void } = {
    idleMs: 60_000,
  },
): Cacher =>
  new Cacher(
    {
      key,
      representation,
      store,
      upstream: { recorded, decoded: recorded },
      records: { onRecorded: ignored, onStoreFailure: ignored, onMalformed: ignored },
      connectivity: () => ({
        online: () => true,
        changed: () => new AbortController().signal,
      }),
      ...idle,
      hooks: { onUpstreamWatches: ignored, onWatchers: ignored, onWatcherEnded: ignored, onFailed },
    },
    { identity: nodeIdentity, credential: 'node' },
  )

async function* once(events: readonly WatchEvent[]): AsyncGenerator<readonly WatchEvent[]> {
  yield events
}

/** A watch that is cut before its first event. */
async function* sourceOfCut(): AsyncGenerator<readonly WatchEvent[]> {
  yield []
  throw new Error('the link is cut')
}

const ignored = (): void => undefined

/** A collection without objects, stored at `version`. */
const emptyAt = (version: () => string | undefined): ObjectStore =>
  ({
    version,
    apply: async () => [],
    confirmedAt: () => 1,
    list: () => ({
      gvk: { group: '', version: 'v1', kind: 'ServiceList' },
      resourceVersion: '10',
      extra: '',
      confirmedAt: 1,
      batches: [],
    }),
  }) as unknown as ObjectStore

const emptyAt10 = emptyAt(() => '10')

/**
 * What a client is sent that watches from 10, where the collection is stored at 10, and its
 * upstream watch sends `event` and ends; `stored` is what is stored from then on.
 */
async function sent(event: WatchEvent, stored: string | undefined): Promise<string[]> {
  let version: string | undefined = '10'
  const store = emptyAt(() => version)
  const leaving = new AbortController()
  let asked = 0
  const recorded = async ({ signal }: Exchange): Promise<Reply> => {
    asked += 1
    if (asked > 1) return untilOver(signal)
    return watchReply(
      representation,
      'Service',
      (async function* () {
        version = stored
        yield [event]
      })(),
    )
  }
  await using cacher = cacherOf(store, recorded, () => leaving.abort())
  const all: string[] = []
  for await (const group of cacher.events({ ...watch, signal: leaving.signal }) ?? []) {
    for (const one of group) all.push('object' in one ? one.object.resourceVersion : one.type)
    leaving.abort()
  }
  return all
}

void t.test('a stored event is sent', async (t) => {
  t.strictSame(await sent(added('11'), '11'), ['11'])
})

void t.test('an event that is not stored is sent to no client', async (t) => {
  t.strictSame(await sent(added('11'), '10'), [])
  t.strictSame(await sent(added('11'), undefined), [])
})

void t.test('an event before the sent version is sent to no client', async (t) => {
  t.strictSame(await sent(added('9'), '10'), [])
})

void t.test('what was stored when the upstream watch was cut comes again', async (t) => {
  let version = '10'
  const asked: (string | null)[] = []
  const recorded = async ({ url, signal }: Exchange): Promise<Reply> => {
    asked.push(new URL(url, 'http://api').searchParams.get('resourceVersion'))
    version = '12'
    if (asked.length === 1) return watchReply(representation, 'Service', sourceOfCut())
    const again = async function* (): AsyncGenerator<readonly WatchEvent[]> {
      yield [added('11')]
      await untilOver(signal)
    }
    return watchReply(representation, 'Service', again())
  }
  const leaving = new AbortController()
  await using cacher = cacherOf(
    emptyAt(() => version),
    recorded,
  )
  const events = cacher.events({ ...watch, signal: leaving.signal })
  t.match(await inTime('the event', events!.next()), { value: [added('11')] })
  t.strictSame(asked, ['10', '10'])
  await events!.return(undefined)
})

void t.test('events are compared for a client that selects some of the objects', async (t) => {
  let version = '10'
  let compares: boolean | undefined
  const store = {
    version: () => version,
    apply: async (_key: unknown, _events: unknown, { previous }: ApplyOptions) => {
      compares = previous
      return []
    },
    confirmedAt: () => 1,
    list: () => ({
      gvk: { group: '', version: 'v1', kind: 'ServiceList' },
      resourceVersion: version,
      extra: '',
      confirmedAt: 1,
      batches: [],
    }),
  } as unknown as ObjectStore
  const asked = Promise.withResolvers<void>()
  const recorded = async ({ signal }: Exchange): Promise<Reply> =>
    watchReply(
      representation,
      'Service',
      (async function* () {
        version = '11'
        yield [added('11')]
        asked.resolve()
        await selecting.promise
        version = '12'
        yield [added('12')]
        await untilOver(signal)
      })(),
    )
  const selecting = Promise.withResolvers<void>()
  await using cacher = cacherOf(store, recorded)
  const leaving = new AbortController()
  const all = cacher.events({ ...watch, signal: leaving.signal })
  t.match(await all?.next(), { value: [added('11')] })
  await asked.promise
  const selection = selectionOf(services, { ...key, labelSelector: 'app=x' }, representation)
  if (!selection) throw new Error('there is no such selection')
  const some = cacher.events({
    ...watch,
    selection,
    signal: leaving.signal,
  })
  t.equal(some, undefined, 'what is in memory was not compared')
  const later = cacher.events({
    ...watch,
    from: '11',
    selection,
    signal: leaving.signal,
  })
  const first = later?.next()
  selecting.resolve()
  await turn()
  t.equal(compares, true)
  leaving.abort()
  await Promise.all([all?.return(undefined), first])
})

void t.test('no request waits for a collection that the store does not take', async (t) => {
  const whole = emptyAt(() => undefined)
  const store = { ...whole, list: () => undefined } as ObjectStore
  const recorded = async (): Promise<Reply> => listReply(representation, emptyAt10.list(key)!)
  await using cacher = cacherOf(store, recorded, ignored, { idleMs: 600_000 })
  await inTime('the upstream watch to fail', cacher.open(600_000))
  t.notOk(cacher.isLive)
})

for (const left of [undefined, '10']) {
  void t.test(
    `a watch ends where its version is forgotten and the store, at ${left}, takes no list`,
    async (t) => {
      let version: string | undefined = '10'
      const store = emptyAt(() => version)
      const status = expired('too old resource version: 10 (20)')
      const recorded = async ({ url }: Exchange): Promise<Reply> => {
        if (url.includes('watch=true'))
          return watchReply(representation, 'Service', once([{ type: 'ERROR', status }]))
        version = left
        return listReply(representation, { ...emptyAt10.list(key)!, resourceVersion: '20' })
      }
      await using cacher = cacherOf(store, recorded)
      const { signal } = new AbortController()
      const events = cacher.events({ ...watch, lastsMs: 600_000, signal })
      t.strictSame(await inTime('the end', events!.next()), { value: undefined, done: true })
      t.notOk(cacher.isLive, 'API servers answer those that come next')
    },
  )
}

void t.test('a watch stays where its version is forgotten, and another lists that', async (t) => {
  let version = '10'
  const status = expired('too old resource version: 10 (20)')
  let watches = 0
  const recorded = async ({ url, signal }: Exchange): Promise<Reply> => {
    if (!url.includes('watch=true')) return listReply(representation, emptyAt10.list(key)!)
    watches += 1
    if (watches === 1)
      return watchReply(representation, 'Service', once([{ type: 'ERROR', status }]))
    if (watches > 2) return untilOver(signal)
    version = '11'
    return watchReply(representation, 'Service', once([added('11')]))
  }
  await using cacher = cacherOf(
    emptyAt(() => version),
    recorded,
  )
  const leaving = new AbortController()
  const events = cacher.events({ ...watch, lastsMs: 600_000, signal: leaving.signal })
  t.match(await inTime('an event', events!.next()), { value: [added('11')] })
  leaving.abort()
  await events?.return(undefined)
})

void t.test('a watch that begins while the upstream watch closes ends', async (t) => {
  const [idle, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()]
  await using cacher = cacherOf(emptyAt10, () => closed.promise, ignored, {
    idleMs: 0,
    onIdle: () => idle.resolve(),
  })
  void cacher.open(60_000)
  await idle.promise
  const events = cacher.events({ ...watch, signal: new AbortController().signal })
  const first = events!.next()
  closed.reject(new Error('the request is over'))
  t.match(await inTime('the end', first), { done: true })
})
