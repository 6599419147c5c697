import { wholeText } from '../../../http/exchange/chunks.ts'
import type {
  BytesReply,
  Exchange,
  Handler,
  Reply,
  WatchReply,
} from '../../../http/exchange/exchange.ts'
import { ownRequest, type RequestCredentials } from '../../../http/exchange/own-request.ts'
import type { WatchEvent } from '../../../api/codec/watch.ts'
import { mediaType } from '../../../api/kube/media-type.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { pathOf } from '../../../api/kube/resources.ts'
import { RequestRefused, watchQuery, type ListerWatcher } from '../../../api/reflector/reflector.ts'
import { askingFor, type Representation } from '../../../api/request/representation.ts'
import type { CollectionKey, ObjectStore } from '../../store/store.ts'
import { refusalOf } from '../refusal.ts'

/** The handlers that reach the API servers. */
export interface UpstreamHandlers {
  /** Records each answer before it returns it: its content has been committed. */
  readonly recorded: Handler<Exchange, Reply>
  readonly unrecorded: Handler<Exchange, BytesReply>
}

/** The client in whose place a cacher reads from the API server. */
export interface ReflectorClient extends RequestCredentials {
  /** That of the client, under whose component answers are recorded; absent: the hub's own. */
  readonly userAgent?: string
  /** Whether a watcher of the events needs the previous state of the objects. */
  readonly comparesEvents: () => boolean
}

interface ReflectedCollection {
  readonly key: CollectionKey
  readonly representation: Representation
  readonly store: ObjectStore
  readonly upstream: UpstreamHandlers
  /** Called for each request: the newest credential counts. */
  readonly client: () => ReflectorClient
}

/** Larger than any single object (etcd takes 1.5 MiB). */
const peekBytes = 4 * 1024 * 1024

interface ListMeta {
  readonly metadata?: { readonly resourceVersion?: string }
}

interface StoredListerWatcher extends Omit<ListerWatcher, 'list'> {
  /** As that of a `ListerWatcher`; resolves to the version of the list. */
  readonly list: (
    resourceVersion: Parameters<ListerWatcher['list']>[0],
    signal: AbortSignal,
  ) => Promise<string>
  /**
   * The version of a consistent read of one object, which no lagging API server answers from its
   * watch cache. Rejects where it is refused.
   */
  readonly consistentVersion: (signal: AbortSignal) => Promise<string | undefined>
}

/** Reads a collection into the store. */
export function storedListerWatcher(of: ReflectedCollection): StoredListerWatcher {
  const { key, representation, store, upstream } = of
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
  const ask = (
    verb: 'list' | 'watch',
    query: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Reply> => {
    const { accept, query: included } = askingFor(representation, verb)
    return upstream.recorded(
      ownRequest({
        method: 'GET',
        ...of.client(),
        url: url({ ...included, ...query }),
        accept,
        gzip: true,
        signal,
      }),
    )
  }
  const consistentVersion = async (signal: AbortSignal): Promise<string | undefined> => {
    const request = { method: 'GET', ...of.client(), accept: mediaType('json'), signal } as const
    const reply = await upstream.unrecorded(ownRequest({ ...request, url: url({ limit: '1' }) }))
    if (reply.status !== 200) throw refusalOf(reply)
    const { metadata } = JSON.parse(await wholeText(reply.source, peekBytes)) as ListMeta
    return metadata?.resourceVersion
  }
  return {
    list: async (resourceVersion, signal) => {
      const reply = await ask('list', resourceVersion === '' ? {} : { resourceVersion }, signal)
      if (reply.kind !== 'list' || reply.representation.key !== representation.key)
        throw refusalOf(reply)
      for await (const _ of reply.list.batches) signal.throwIfAborted()
      return (await reply.list.end()).meta.resourceVersion
    },
    watch: async (options, signal) => {
      const reply = await ask('watch', watchQuery(options), signal)
      if (reply.kind !== 'watch') throw refusalOf(reply)
      return eventsIn(representation, reply)
    },
    isRestored: async (signal) => isNewer(store.version(key), await consistentVersion(signal)),
    consistentVersion,
  }
}

/**
 * The events, all in this representation. Those of a Table come without their frames: only the
 * first of these has the columns, which each client is sent with its own first event.
 */
async function* eventsIn(
  { key, projection }: Representation,
  { events, representation }: WatchReply,
): AsyncGenerator<readonly WatchEvent[]> {
  for await (const group of events) {
    const answered = representation()
    const isOther = answered.key !== key || answered.projection !== projection
    // An ERROR is a Status in every representation.
    if (isOther && group.some(({ type }) => type !== 'ERROR'))
      throw new RequestRefused(200, 'answered in another representation')
    yield projection === 'table' ? group.map(withoutFrame) : group
  }
}

function withoutFrame(event: WatchEvent): WatchEvent {
  if (event.type === 'UNREAD') return event
  const { frame: _ofThisWatch, ...rest } = event
  return rest
}
