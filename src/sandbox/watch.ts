import { after, every, jitter } from '../base/clock.ts'
import { namespacedName } from '../api/kube/object.ts'
import { expired } from '../api/kube/status.ts'
import { versionNumber, type ListOptions } from '../api/request/list-options.ts'
import type { Kind } from './kinds.ts'
import { waitUntilFresh } from './list.ts'
import type { ResponseFormat } from './negotiation.ts'
import type { KubeObject } from './object.ts'
import type { ResponseWriter } from './response-writer.ts'
import { bookmarkObject, renderErrorEvent, renderEvent, type EventType } from './render.ts'
import type { SelectionPredicate } from './selection-predicate.ts'
import { storedAs, type StorageEvent, type View } from './storage.ts'

export interface WatchSettings {
  readonly bookmarkMs: number
  /** A watcher that leaves more than this unread is cut. */
  readonly queueBytes: number
  /** Whether an unversioned watch with bookmarks ends its initial events with an annotated one. */
  readonly watchListServed: boolean
}

export interface WatchRequest {
  readonly kind: Kind
  readonly selection: SelectionPredicate
  readonly options: ListOptions
  readonly format: ResponseFormat
}

/** A watch that has begun. */
export interface OpenWatch {
  /** Ends it cleanly, as its deadline does. */
  end(): void
}

/** The deadline of a watch that names none: kube-apiserver's least time, and up to twice that. */
const leastDeadlineMs = 1_800_000

/**
 * Resolves when the watch may begin: at once, unless its initial events have to be no older than a
 * future version; without a version they are the most recent (apiserver pkg/storage/cacher:
 * GetCurrentResourceVersion). Throws a StatusError for a malformed version, and for one that does
 * not come in time.
 */
export async function awaitStart(
  view: View,
  { resourceVersion, sendInitialEvents }: ListOptions,
  freshnessMs: number,
): Promise<void> {
  const requested = versionNumber(resourceVersion, 'watch')
  if (sendInitialEvents !== true) return
  await waitUntilFresh(view, resourceVersion === '' ? view.newest : requested, freshnessMs)
}

/**
 * Streams initial events, changes and bookmarks after the head, until the deadline or the client
 * ends the watch. `undefined`: it has ended at once, as the version has expired.
 */
export function watch(
  view: View,
  watched: WatchRequest,
  writer: ResponseWriter,
  settings: WatchSettings,
): OpenWatch | undefined {
  const { kind, options, format } = watched
  const requested = versionNumber(options.resourceVersion, 'watch')
  const initial = options.sendInitialEvents ?? requested === 0
  let first = true
  const send = (type: EventType, object: KubeObject): void => {
    writer.write(renderEvent(kind, type, object, format, first))
    first = false
    if (writer.waiting > settings.queueBytes) writer.break()
  }
  const bookmark = (initialEventsEnd = false): void => {
    // A lagging server sends no bookmark older than the client's version (apiserver
    // pkg/storage/cacher/cache_watcher.go).
    if (view.version < requested) return
    send('BOOKMARK', bookmarkObject(kind, String(view.version), initialEventsEnd))
  }
  const sendChange = (change: StorageEvent): void => {
    const event = eventOf(watched, change)
    if (event) send(event.type, event.object)
  }

  if (!initial && requested !== 0 && requested < view.compacted) {
    const status = expired(`too old resource version: ${requested} (${view.compacted})`)
    writer.end(renderErrorEvent(status, format))
    return undefined
  }
  if (initial) {
    for (const object of selected(view, watched)) send('ADDED', object)
    const ends = options.sendInitialEvents ?? settings.watchListServed
    if (ends && options.allowBookmarks) bookmark(true)
  } else if (requested !== 0) {
    for (const change of view.changesAfter(requested)) sendChange(change)
  }

  const running = new DisposableStack()
  running.use(view.follow((change) => change.version > requested && sendChange(change)))
  if (options.allowBookmarks) running.use(every(settings.bookmarkMs, () => bookmark()))
  const deadline =
    options.timeoutSeconds === undefined || options.timeoutSeconds === 0
      ? jitter(leastDeadlineMs, 2 * leastDeadlineMs)
      : options.timeoutSeconds * 1000
  if (options.allowBookmarks && deadline > 2000) {
    running.use(after(deadline - 2000, () => bookmark()))
  }
  const end = (): void => {
    running.dispose()
    writer.end()
  }
  running.use(after(Math.min(deadline, 2 ** 31 - 1), end))
  writer.onClose(() => running.dispose())
  return { end }
}

function selected(view: View, { kind, selection }: WatchRequest): KubeObject[] {
  return [...view.at(kind, view.version).values()]
    .filter((object) => selection.selects(object))
    .toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1))
}

const sortKey = ({ metadata }: KubeObject): string => namespacedName(metadata)

/**
 * The event for a change in a watch with selectors: an object that newly matches is added, and one
 * that no longer matches is deleted.
 */
function eventOf(
  { kind, selection }: WatchRequest,
  change: StorageEvent,
): { type: EventType; object: KubeObject } | undefined {
  if (storedAs(kind) !== storedAs(change.kind)) return undefined
  const { object, previous } = change
  const was = previous !== undefined && selection.selects(previous)
  const is = change.type !== 'DELETED' && selection.selects(object)
  if (is) return { type: was ? 'MODIFIED' : 'ADDED', object }
  if (!was) return undefined
  const { resourceVersion } = object.metadata
  return {
    type: 'DELETED',
    object:
      change.type === 'DELETED'
        ? object
        : ({ ...previous, metadata: { ...previous.metadata, resourceVersion } } as KubeObject),
  }
}
