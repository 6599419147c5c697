import { follow as aborting, type AbortSignalLike } from '../../../base/abort.ts'
import { elapsed } from '../../../base/clock.ts'
import { versionAfter, type WatchEvent } from '../../../api/codec/watch.ts'
import type { CollectionSnapshot, Reply, WatchReply } from '../../../http/exchange/exchange.ts'
import { isNewer, type ResourceVersion } from '../../../api/kube/resource-version.ts'
import type { Cacher, CacheWatchOptions } from './cacher.ts'

/** A cacher that can go on with a client's watch, and what the client takes of it. */
interface Follower {
  readonly cacher: Pick<Cacher, 'isLive' | 'events' | 'snapshot' | 'gvk' | 'extra' | 'onReady'>
  readonly options: CacheWatchOptions
}

interface Continuation {
  readonly own: OwnUpstream
  /** The version the client watches from; absent: the watch begins with the state. */
  readonly from: ResourceVersion | undefined
  /**
   * Which cacher goes on with the watch, as soon as it is live or, with `isCut`, at once;
   * `undefined`: none, as yet.
   */
  readonly follower: (isCut: boolean) => Follower | undefined
  /** The cacher, where it is known before the first event. */
  readonly cacher?: Follower['cacher']
  /** Resolves when the events may be read; absent: at once. */
  readonly begin?: Promise<unknown> | undefined
}

/** Forwards the request to an API server, until `signal` aborts. */
export type PassThrough = (signal: AbortSignalLike) => Promise<Reply>

type Rest = AsyncIterable<readonly WatchEvent[]>

/** A client's own upstream watch, which ends with the client or by `close`. */
interface OwnUpstream {
  readonly client: AbortSignalLike
  readonly signal: AbortSignal
  /** When the client sent its request, by the monotonic clock. */
  readonly began: number
  /** Closes it, though it may be waiting for its next event. */
  readonly close: () => void
}

export function ownUpstream(client: AbortSignalLike): OwnUpstream {
  const ending = new AbortController()
  aborting(client, ending)
  const { signal } = ending
  return { client, signal, began: elapsed(), close: () => ending.abort() }
}

/**
 * The client's own upstream watch, until a cacher follows it: as soon as possible, so that the
 * upstream watch can be closed, or when it is cut. Nothing follows among initial events, whose
 * versions are unordered, nor after an ERROR.
 */
export function continued(reply: WatchReply, continuation: Continuation): WatchReply {
  let shown: Pick<WatchReply, 'gvk' | 'extra' | 'snapshot'> = reply
  const follow: Follow = ({ cacher, options }, from) => {
    const lastsMs = options.lastsMs - (elapsed() - continuation.own.began)
    const rest =
      lastsMs > 0 ? cacher.events({ ...options, from, isUnderWay: true, lastsMs }) : undefined
    // Its rows would stand under the columns that the client has.
    const columns = reply.extra?.() ?? ''
    const isOther = columns !== '' && columns !== cacher.extra
    if (!rest || isOther) return undefined
    shown = {
      // The watch may have been cut before its first event, which shows them.
      gvk: () => cacher.gvk,
      extra: () => cacher.extra,
      snapshot: () => newerOf(cacher.snapshot(options), reply.snapshot?.()),
    }
    return rest
  }
  return {
    ...reply,
    events: followed(reply.events, continuation, follow),
    isShared: true,
    gvk: () => shown.gvk(),
    extra: () => shown.extra?.() ?? '',
    snapshot: () => shown.snapshot?.(),
  }
}

/**
 * The newer snapshot; the other is disposed of. Where nothing has come since the client's own list,
 * the cacher's may still be at an older version.
 */
function newerOf(
  ofCacher: CollectionSnapshot | undefined,
  own: CollectionSnapshot | undefined,
): CollectionSnapshot | undefined {
  const isOwn = isNewer(own?.resourceVersion, ofCacher?.resourceVersion)
  const [newer, older] = isOwn ? [own, ofCacher] : [ofCacher ?? own, ofCacher && own]
  older?.[Symbol.dispose]()
  return newer
}

/** `undefined`: the cacher cannot go on from that version. */
type Follow = (follower: Follower, from: ResourceVersion) => Rest | undefined

async function* followed(
  events: AsyncIterable<readonly WatchEvent[]>,
  { own, from, follower, cacher, begin }: Continuation,
  follow: Follow,
): AsyncGenerator<readonly WatchEvent[]> {
  let at = from
  let rest: Rest | undefined
  let isReady = false
  let wake = (): void => undefined
  let heard: Follower['cacher'] | undefined
  let listening: Disposable | undefined
  const listen = (known: Follower['cacher'] | undefined): void => {
    if (known === heard) return
    listening?.[Symbol.dispose]()
    heard = known
    listening = known?.onReady(() => {
      isReady = true
      wake()
    })
  }
  const source = events[Symbol.asyncIterator]()
  try {
    listen(cacher)
    await begin
    for (let next = source.next(); ;) {
      const woken = new Promise<undefined>((resolve) => {
        wake = () => resolve(undefined)
        if (isReady) resolve(undefined)
      })
      const result = await Promise.race([next, woken])
      if (result === undefined) isReady = false
      else if (result.done === true) break
      else {
        const group = result.value
        yield group
        if (group.some(({ type }) => type === 'ERROR')) {
          at = undefined
          break
        }
        at = positionAfter(group, at)
        next = source.next()
      }
      const found = at && follower(false)
      if (found) listen(found.cacher)
      if (at && found?.cacher.isLive) rest = follow(found, at)
      if (!rest) continue
      // What the client's own upstream watch would have sent next may be malformed.
      next.catch(() => undefined)
      break
    }
  } finally {
    listening?.[Symbol.dispose]()
    own.close()
    void source.return?.().catch(() => undefined)
  }
  if (!rest && at && !own.client.aborted) {
    const found = follower(true)
    rest = found && follow(found, at)
  }
  if (rest) yield* rest
}

/** The client's version after a group of events; `undefined`: among initial events. */
function positionAfter(
  group: readonly WatchEvent[],
  before: ResourceVersion | undefined,
): ResourceVersion | undefined {
  const isKnown = before !== undefined || group.some(({ type }) => type === 'BOOKMARK')
  return isKnown ? (versionAfter(group) ?? before) : before
}
