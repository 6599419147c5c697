import { onAbort } from '../base/abort.ts'
import { after, elapsed, every } from '../base/clock.ts'
import { objectKind } from '../codec/list.ts'
import type { WatchEvent } from '../codec/watch.ts'
import type { Exchange, WatchReply } from '../exchange/exchange.ts'
import { mediaType } from '../kube/media-type.ts'
import { expired, StatusError } from '../kube/status.ts'
import { listOptionsOf, type ListOptions } from '../request/list-options.ts'
import { isTrue, type ResourceRequest } from '../request/request-info.ts'
import { bookmarkMs, lastBookmarkMs, watchLifetimeMs } from '../request/watch-times.ts'
import { answerHeaders } from '../store/answers.ts'
import { newerThan, refuseNoVersion } from '../store/asked-version.ts'
import { withStaleness } from '../store/staleness.ts'
import { StoreFailure, type ObjectStore, type StoredList } from '../store/store.ts'
import { neverCached } from './answers.ts'
import { endsAfter, rankOf } from './return-order.ts'
import {
  sourceOf,
  storedChanges,
  storedList,
  type SelectedChanges,
  type Source,
} from '../store/source.ts'

/** When a watch ends unless its client ends it. */
export interface WatchEnd {
  /** Aborts when the cloud is back. */
  readonly recovered: AbortSignal
  /**
   * How long a watch lasts at least whose client named no timeout; as at an API server, such
   * watches last up to twice as long.
   */
  readonly leastMs: number
}

/**
 * A watch while the cloud is gone: what the collection holds where that was asked for, or what it
 * was told after the version that is named; then silence with bookmarks. It ends at its deadline,
 * when the client leaves, and, cleanly, when `end` says that the cloud is back: the client's next
 * watch goes there with its own version and gets what it missed.
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
    held: () => storedList(source, store),
    events: events(exchange, info, beginningOf(options, source, store, stored), end),
  }
}

/** How a watch begins. */
interface Beginning {
  /** It is over with an ERROR. */
  readonly batches: Iterable<readonly WatchEvent[]>
  /** Where its client is then; absent: further than is known here. */
  readonly version?: string
  /** These are initial events, and it is to be said where they end. */
  readonly isState?: true
}

/**
 * By the resource version that is asked for (apiserver pkg/storage/cacher). Throws what is refused
 * before the answer begins.
 */
function beginningOf(
  { resourceVersion: asked, sendInitialEvents }: ListOptions,
  source: Source,
  store: ObjectStore,
  stored: StoredList,
): Beginning {
  const { resourceVersion: version } = stored
  refuseNoVersion(asked, version, 'watch')
  const isAny = asked === '' || asked === '0'
  const newer = newerThan(asked, version)
  if (sendInitialEvents === true && newer) throw new StatusError(newer)
  // An API server that serves WatchLists takes a watch from any version for one, unless it says
  // otherwise.
  if (sendInitialEvents ?? isAny) return { batches: added(stored.batches), version, isState: true }
  // What is not going to be read is not kept for this watch, which may last for hours.
  stored.batches[Symbol.iterator]().return?.()
  if (isAny) return { batches: [], version }
  // To send such a client back to a list would show it what was before; at an API server, too, it
  // waits. Nor is it told an older version.
  if (newer) return { batches: [] }
  const changes = storedChanges(source, store, asked)
  if (changes === undefined) throw neverCached()
  const tooOld = `too old resource version: ${asked} (${version})`
  if (changes === 'expired') return { batches: [[errorOf(tooOld)]] }
  return { batches: retold(changes.batches, tooOld), version: changes.resourceVersion }
}

const errorOf = (tooOld: string): WatchEvent => ({ type: 'ERROR', status: expired(tooOld) })

function* added(batches: StoredList['batches']): Generator<readonly WatchEvent[]> {
  for (const objects of batches) yield objects.map((object) => ({ type: 'ADDED', object }) as const)
}

/** Where they cannot be read to their end, what is missing counts as no longer known. */
function* retold(
  batches: SelectedChanges['batches'],
  tooOld: string,
): Generator<readonly WatchEvent[]> {
  try {
    yield* batches
  } catch (cause) {
    if (!(cause instanceof StoreFailure)) throw cause
    yield [errorOf(tooOld)]
  }
}

async function* events(
  exchange: Exchange,
  info: ResourceRequest,
  { batches, version, isState }: Beginning,
  end: WatchEnd,
): AsyncGenerator<readonly WatchEvent[]> {
  for (const batch of batches) {
    if (batch.length > 0) yield batch
    if (batch.at(-1)?.type === 'ERROR') return
  }
  const told = isTrue(info.query.get('allowWatchBookmarks')) ? version : undefined
  const bookmark = (resourceVersion: string, initialEventsEnd: boolean): readonly WatchEvent[] => [
    { type: 'BOOKMARK', resourceVersion, initialEventsEnd },
  ]
  if (isState && told !== undefined) yield bookmark(told, true)
  for await (const _ of ticksUntilOver(exchange, info, end)) {
    if (told !== undefined) yield bookmark(told, false)
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
  const lifetimeMs = watchLifetimeMs(info, leastMs)
  let ending: Disposable | undefined
  using _left = onAbort(exchange.signal, end)
  using _deadline = after(lifetimeMs, end)
  using _back = onAbort(recovered, () => {
    ending = after(endsAfter(rankOf(exchange, info), elapsed() - began), end)
  })
  using _bookmarks = every(bookmarkMs, () => wake())
  using _last =
    lifetimeMs > lastBookmarkMs ? after(lifetimeMs - lastBookmarkMs, () => wake()) : undefined
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
