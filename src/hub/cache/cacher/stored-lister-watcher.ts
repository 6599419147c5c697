import type { Exchange, Handler, Reply, WatchReply } from '../../../http/exchange/exchange.ts'
import { ownRequest, type RequestCredentials } from '../../../http/exchange/own-request.ts'
import { MalformedBody } from '../../../api/codec/malformed-body.ts'
import { isPartial } from '../../../api/codec/partial.ts'
import { isObjectEvent, versionAfter, type WatchEvent } from '../../../api/codec/watch.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import type { ResourceVersion } from '../../../api/kube/resource-version.ts'
import { pathOf } from '../../../api/kube/resources.ts'
import { RequestRefused, watchQuery, type ListerWatcher } from '../../../api/reflector/reflector.ts'
import { acceptFor, type Representation } from '../../../api/request/representation.ts'
import type { CollectionKey, ObjectStore } from '../../store/store.ts'
import type { RecorderHooks } from '../recordable.ts'
import { refusalOf } from '../refusal.ts'

/** How a cacher reaches the API servers. */
export interface UpstreamHandlers {
  /** Records each answer before it returns it: its content has been committed. */
  readonly recorded: Handler<Exchange, Reply>
  /** Decodes a watch, and records nothing. */
  readonly decoded: Handler<Exchange, Reply>
}

/** The client in whose place a cacher reads from the API server. */
export interface ReflectorClient extends RequestCredentials {
  /** That of the client; absent: the hub's own. */
  readonly userAgent?: string
  /** Under which answers are recorded, whatever the User-Agent says; absent: as that says. */
  readonly component?: string
}

interface ReflectedCollection {
  readonly key: CollectionKey
  readonly representation: Representation
  readonly upstream: UpstreamHandlers
  readonly store: ObjectStore
  readonly records: RecordHooks
  /** Called for each request: the newest credential counts. */
  readonly client: () => ReflectorClient
  /** Whether a reader of the events needs the previous state of each object. */
  readonly comparesEvents: () => boolean
}

/** The reports of recorded events. */
export type RecordHooks = Pick<RecorderHooks, 'onRecorded' | 'onStoreFailure' | 'onMalformed'>

interface StoredListerWatcher extends Omit<ListerWatcher, 'list'> {
  /**
   * Resolves to the version of the list. `resourceVersion` is '0' for a list of any age, '' for a
   * consistent read, or a version than which the list is not older.
   */
  readonly list: (
    resourceVersion: '' | '0' | ResourceVersion,
    signal: AbortSignal,
  ) => Promise<string>
}

/** Reads a collection into the store. */
export function storedListerWatcher(of: ReflectedCollection): StoredListerWatcher {
  const { key, representation, upstream } = of
  const url = (query: Record<string, string>): string => {
    const { labelSelector, fieldSelector } = key
    const parameters = new URLSearchParams({
      ...(labelSelector !== '' && { labelSelector }),
      ...(fieldSelector !== '' && { fieldSelector }),
      ...query,
    })
    const path = pathOf(key.gvr, key.namespace)
    return parameters.size === 0 ? path : `${path}?${parameters}`
  }
  const request = (
    verb: 'list' | 'watch',
    query: Record<string, string>,
    signal: AbortSignal,
  ): Exchange =>
    ownRequest({
      method: 'GET',
      ...of.client(),
      url: url(query),
      accept: acceptFor(representation, verb),
      gzip: true,
      signal,
    })
  return {
    list: async (resourceVersion, signal) => {
      const query: Record<string, string> = resourceVersion === '' ? {} : { resourceVersion }
      const reply = await upstream.recorded(request('list', query, signal))
      if (reply.kind !== 'list' || reply.representation.key !== representation.key)
        throw refusalOf(reply)
      for await (const _ of reply.list.batches) signal.throwIfAborted()
      return (await reply.list.end()).meta.resourceVersion
    },
    watch: async (options, signal) => {
      const exchange = request('watch', watchQuery(options), signal)
      const reply = await upstream.decoded(exchange)
      if (reply.kind !== 'watch') throw refusalOf(reply)
      return recordedEvents(of, exchange, reply, options.resourceVersion)
    },
  }
}

/** The events, all in this representation, each committed before it is passed on. */
async function* recordedEvents(
  of: ReflectedCollection,
  exchange: Exchange,
  { events, gvk }: WatchReply,
  from: string,
): AsyncGenerator<readonly WatchEvent[]> {
  const { representation, records } = of
  let since = from
  try {
    for await (const group of events) {
      // A server may answer with whole objects in place of their metadata.
      const isPart = representation.projection === 'object' || isPartial(gvk())
      if (!isPart && group.some(isObjectEvent))
        throw new RequestRefused(200, 'answered in another representation')
      yield await recorded(of, group, since)
      since = versionAfter(group) ?? since
    }
  } catch (error) {
    if (error instanceof MalformedBody) records.onMalformed(error, exchange)
    throw error
  }
}

/**
 * Resolves once those that arrived together are committed together, to the same events, with the
 * previous state of each object where due. `since`: the version that the watch has reached. The
 * store takes in what follows the stored version without a gap.
 */
async function recorded(
  { store, key, records, comparesEvents }: ReflectedCollection,
  events: readonly WatchEvent[],
  since: string,
): Promise<readonly WatchEvent[]> {
  if (events.every(({ type }) => type === 'ERROR' || type === 'UNREAD')) return events
  try {
    const options = { since, previous: comparesEvents() }
    const previous = await store.apply(key, events, options)
    records.onRecorded('watch')
    return options.previous ? events.map((event, at) => withPrevious(event, previous[at])) : events
  } catch (cause) {
    records.onStoreFailure(cause)
    return events
  }
}

function withPrevious(event: WatchEvent, previous: ApiObject | undefined): WatchEvent {
  if (previous === undefined || !isObjectEvent(event)) return event
  return { ...event, previous }
}
