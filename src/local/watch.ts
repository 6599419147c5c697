import { onAbort } from '../base/abort.ts'
import { after, elapsed, every, jitter } from '../base/clock.ts'
import { objectKind } from '../codec/list.ts'
import { shortestWatchMs, type WatchEvent } from '../codec/watch.ts'
import type { Exchange, WatchReply } from '../exchange/exchange.ts'
import { mediaType } from '../kube/media-type.ts'
import { compareVersions, resourceVersion } from '../kube/resource-version.ts'
import { expired, StatusError, tooLargeResourceVersion } from '../kube/status.ts'
import { listOptionsOf, type ListOptions } from '../request/list-options.ts'
import { isTrue, type ResourceRequest } from '../request/request-info.ts'
import type { ObjectStore, StoredList } from '../store/store.ts'
import { answerHeaders } from '../store/answers.ts'
import { neverCached, refuseNoVersion } from './answers.ts'
import { sourceOf, storedList } from './source.ts'
import { withStaleness } from './staleness.ts'

/** When a watch ends unless its client ends it. */
export interface WatchEnd {
  /** Aborts when the cloud is back. */
  readonly recovered: AbortSignal
  /** How long a watch lasts at least whose client named no timeout; as at an API server, such watches last up to twice as long. */
  readonly leastMs: number
}

const bookmarkMs = 60_000

/** Over how long watches are ended when the cloud is back, so that they do not all come to it at once. */
const spreadMs = 1_000

/**
 * A watch while the cloud is gone: what the collection holds, where that was asked for, then silence with bookmarks. It ends at its
 * deadline, when the client leaves, and, cleanly, when `end` says that the cloud is back: the client's next watch goes there with
 * its own version and gets what it missed. A version that is not the cache's own is answered as the API server answers it.
 */
export function localWatch(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
  end: WatchEnd,
): WatchReply {
  const options = listOptionsOf(info.query, true, true)
  const source = sourceOf(exchange, info, store)
  const stored = source && storedList(source, store)
  if (!stored) throw neverCached()
  const { form } = source
  const start = startOf(options, stored.resourceVersion)
  const gvk = objectKind(stored.gvk)
  return {
    kind: 'watch',
    from: 'cache',
    status: 200,
    headers: withStaleness(
      answerHeaders(mediaType(form.encoding, true)),
      exchange,
      stored.confirmedAt,
    ),
    form: () => form,
    gvk: () => gvk,
    extra: stored.extra,
    events: events(exchange, info, stored, start, end),
  }
}

type Start = 'with-initial-events' | 'with-state' | 'silent' | { readonly expired: string }

/** How a watch begins, by its resource version (apiserver pkg/storage/cacher). Throws what is refused before the answer begins. */
function startOf(options: ListOptions, stored: string): Start {
  refuseNoVersion(options.resourceVersion, stored, 'watch')
  const asked = resourceVersion(options.resourceVersion)
  const kept = resourceVersion(stored)
  const newer = asked !== undefined && kept !== undefined && compareVersions(asked, kept) > 0
  if (options.sendInitialEvents === true) {
    if (newer) throw new StatusError(tooLargeResourceVersion(asked, kept))
    return 'with-initial-events'
  }
  if (asked === undefined) return options.sendInitialEvents === false ? 'silent' : 'with-state'
  if (asked === kept) return 'silent'
  // With an older version the events since are not known here; with a newer one, what the client has seen is not.
  return { expired: `too old resource version: ${asked} (${stored})` }
}

async function* events(
  exchange: Exchange,
  info: ResourceRequest,
  stored: StoredList,
  start: Start,
  end: WatchEnd,
): AsyncGenerator<readonly WatchEvent[]> {
  const replays = start === 'with-initial-events' || start === 'with-state'
  // What is not going to be read is not kept for this watch, which may last for hours.
  if (!replays) stored.batches[Symbol.iterator]().return?.()
  if (typeof start === 'object') {
    yield [{ type: 'ERROR', status: expired(start.expired) }]
    return
  }
  if (replays) {
    for (const objects of stored.batches) {
      if (objects.length > 0) yield objects.map((object) => ({ type: 'ADDED', object }) as const)
    }
  }
  const bookmarks = isTrue(info.query.get('allowWatchBookmarks'))
  const bookmark = (initialEventsEnd: boolean): readonly WatchEvent[] => [
    { type: 'BOOKMARK', resourceVersion: stored.resourceVersion, initialEventsEnd },
  ]
  // An API server that serves WatchLists ends the state it begins with so, too (apiserver pkg/storage/cacher).
  if (replays && bookmarks) yield bookmark(true)
  for await (const due of ticksUntilOver(exchange, info, end)) {
    if (bookmarks && due) yield bookmark(false)
  }
}

/** Yields when a bookmark is due; returns when the watch is over. */
async function* ticksUntilOver(
  exchange: Exchange,
  info: ResourceRequest,
  { recovered, leastMs }: WatchEnd,
): AsyncGenerator<true> {
  const began = elapsed()
  let over = false
  let wake: () => void = () => undefined
  const end = (): void => {
    over = true
    wake()
  }
  let ending: Disposable | undefined
  using _left = onAbort(exchange.signal, end)
  using _deadline = after(lifetimeOf(info, leastMs), end)
  using _back = onAbort(recovered, () => {
    ending = after(Math.max(shortestWatchMs - (elapsed() - began), 0) + jitter(0, spreadMs), end)
  })
  using _bookmarks = every(bookmarkMs, () => wake())
  try {
    for (;;) {
      await new Promise<void>((resolve) => {
        wake = resolve
        if (over) resolve()
      })
      if (over) return
      yield true
    }
  } finally {
    ending?.[Symbol.dispose]()
  }
}

function lifetimeOf({ query }: ResourceRequest, leastMs: number): number {
  const seconds = Number(query.get('timeoutSeconds') ?? 0)
  const asked = Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : jitter(1, 2) * leastMs
  return Math.min(asked, 24 * 3_600_000)
}
