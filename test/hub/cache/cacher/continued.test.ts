import t from 'tap'
import { onAbort } from '../../../../src/base/abort.ts'
import { continued, ownUpstream } from '../../../../src/hub/cache/cacher/continued.ts'
import { turn } from '../../../../src/base/clock.ts'
import { MalformedBody } from '../../../../src/api/codec/malformed-body.ts'
import { everything } from '../../../../src/api/codec/selection.ts'
import type { WatchEvent } from '../../../../src/api/codec/watch.ts'
import { resourceVersion } from '../../../../src/api/kube/resource-version.ts'
import { expired } from '../../../../src/api/kube/status.ts'
import { exchangeOf } from '../../../kit/exchange.ts'
import { watchReply } from '../../../kit/watch-reply.ts'
import type { FilterDefinition } from '../../../../src/hub/filter/filter.ts'
import { allServices, service, services } from '../../../kit/cloud.ts'
import { startCloud } from '../../../kit/hub.ts'
import { startHubParts } from '../../../kit/hub-parts.ts'

const added = (version: number): WatchEvent => ({
  type: 'ADDED',
  object: {
    namespace: 'default',
    name: `at-${version}`,
    uid: 'uid',
    resourceVersion: String(version),
    bytes: Buffer.from('{}'),
  },
})

const bookmark = (version: number): WatchEvent => ({
  type: 'BOOKMARK',
  resourceVersion: String(version),
  initialEventsEnd: true,
})

async function* groups(
  ...all: readonly (readonly WatchEvent[])[]
): AsyncGenerator<readonly WatchEvent[]> {
  yield* all
}

interface Outcome {
  readonly events: WatchEvent[]
  /** The versions that a cacher was to follow from, with a mark for a cut. */
  readonly asked: string[]
}

type Follower = NonNullable<ReturnType<Parameters<typeof continued>[1]['follower']>>

/** A client that watches `events` by itself, until `follower` goes on. */
function watched(
  events: AsyncIterable<readonly WatchEvent[]>,
  from: string | undefined,
  follower: (isCut: boolean) => Follower | undefined,
  own = ownUpstream(new AbortController().signal),
): AsyncIterable<readonly WatchEvent[]> {
  const [representation] = exchangeOf('/api/v1/pods').representations
  if (!representation) throw new Error('no representation')
  const reply = watchReply(representation, 'Pod', events)
  return continued(reply, { own, from: resourceVersion(from), follower }).events
}

/** A cacher that has `events` after a version. */
const followerOf = (
  events: (from: string) => AsyncGenerator<readonly WatchEvent[]> | undefined,
  cacher: Partial<Follower['cacher']> = {},
): Follower => ({
  cacher: {
    isLive: true,
    events: ({ from = '' }) => events(from),
    snapshot: () => undefined,
    gvk: { group: '', version: '', kind: '' },
    extra: '',
    onReady: () => ({ [Symbol.dispose]: () => undefined }),
    ...cacher,
  },
  options: {
    selected: { selection: everything, key: '' },
    bookmarks: false,
    lastsMs: 60_000,
    signal: new AbortController().signal,
  },
})

/** What the client of `own` is sent, where a cacher can follow `followable`. */
async function outcome(
  own: AsyncIterable<readonly WatchEvent[]>,
  followable: string,
  from?: string,
  signal = new AbortController().signal,
): Promise<Outcome> {
  const asked: string[] = []
  const follower = (isCut: boolean): Follower =>
    followerOf((version) => {
      asked.push(isCut ? `${version} cut` : version)
      return asked.at(-1) === followable ? groups([added(99)]) : undefined
    })
  const events: WatchEvent[] = []
  for await (const group of watched(own, from, follower, ownUpstream(signal))) events.push(...group)
  return { events, asked }
}

void t.test('no watch is resumed among initial events, whose versions are unordered', async (t) => {
  const own = groups([added(9)], [added(5)], [bookmark(9)], [added(10)], [added(11)])
  const { events, asked } = await outcome(own, '10')
  t.strictSame(asked, ['9', '10'])
  t.strictSame(events, [added(9), added(5), bookmark(9), added(10), added(99)])
})

void t.test('a watch from a version can be followed from its first event on', async (t) => {
  const { events, asked } = await outcome(groups([added(9)], [added(10)]), '9', '8')
  t.strictSame([events, asked], [[added(9), added(99)], ['9']])
})

void t.test('a watch that is cut goes on from where its client is', async (t) => {
  t.strictSame(await outcome(groups([added(9)]), '9 cut', '8'), {
    events: [added(9), added(99)],
    asked: ['9', '9 cut'],
  })
  t.strictSame((await outcome(groups(), '8 cut', '8')).events, [added(99)])
})

void t.test('a watch that is cut among its initial events is over', async (t) => {
  t.strictSame((await outcome(groups([added(9)]), '9 cut')).asked, [])
})

void t.test('an ERROR is the last that a client is sent', async (t) => {
  const error: WatchEvent = { type: 'ERROR', status: expired('too old') }
  t.strictSame(await outcome(groups([error]), '8 cut', '8'), { events: [error], asked: [] })
})

void t.test(
  'what comes malformed behind an event that a cacher follows does no harm',
  async (t) => {
    const own = (async function* (): AsyncGenerator<readonly WatchEvent[]> {
      yield [added(9)]
      throw new MalformedBody('no frame')
    })()
    const unhandled: unknown[] = []
    const note = (cause: unknown): void => void unhandled.push(cause)
    process.on('unhandledRejection', note)
    t.teardown(() => process.off('unhandledRejection', note))
    t.strictSame((await outcome(own, '9', '8')).events, [added(9), added(99)])
    await turn()
    t.strictSame(unhandled, [])
  },
)

void t.test('no watch is resumed for a client that has gone', async (t) => {
  const signal = AbortSignal.abort()
  t.strictSame((await outcome(groups(), '8 cut', '8', signal)).asked, [])
})

void t.test(
  'a cacher that becomes ready follows without an event, and closes what waits',
  async (t) => {
    const upstream = ownUpstream(new AbortController().signal)
    const own = (async function* (): AsyncGenerator<readonly WatchEvent[]> {
      yield [added(8)]
      await new Promise<void>((resolve) => onAbort(upstream.signal, resolve))
    })()
    let isReady = false
    const begun = Promise.withResolvers<() => void>()
    const follower = followerOf(() => (isReady ? groups([added(99)]) : undefined), {
      onReady: (act) => {
        begun.resolve(act)
        return { [Symbol.dispose]: () => undefined }
      },
    })
    const events = watched(own, '7', () => follower, upstream)[Symbol.asyncIterator]()
    await events.next()
    const next = events.next()
    const ready = await begun.promise
    isReady = true
    ready()
    t.strictSame((await next).value, [added(99)])
    t.ok(upstream.signal.aborted)
    t.equal((await events.next()).done, true)
  },
)

void t.test(
  'a filter that fails is tried once for all clients that a cacher goes on for',
  async (t) => {
    const cloud = await startCloud(t)
    cloud.sandbox.create(services, service('a', '10.96.0.1'))
    const seen: unknown[] = []
    const filter: FilterDefinition = {
      name: 'counting',
      rules: [{ components: ['kube-proxy'], group: '', resources: ['services'], verbs: ['watch'] }],
      onError: 'pass',
      needs: [],
      create: () => (each) => {
        seen.push(each.value(['metadata', 'name']))
        throw new Error('a result that is not cached')
      },
    }
    const hub = await startHubParts(t, { upstream: cloud, filters: [filter] })
    const watches = await Promise.all(
      [1, 2, 3].map(() =>
        hub.as('kube-proxy').watch(allServices, {
          allowWatchBookmarks: 'true',
          resourceVersionMatch: 'NotOlderThan',
          sendInitialEvents: 'true',
        }),
      ),
    )
    for (const watch of watches) await watch.take(2)
    await cloud.sandbox.untilWatches(1)
    cloud.sandbox.create(services, service('b', '10.96.0.2'))
    for (const watch of watches)
      t.match(await watch.next(), { type: 'ADDED', object: { metadata: { name: 'b' } } })
    t.strictSame(seen, ['a', 'a', 'a', 'b'])
  },
)
