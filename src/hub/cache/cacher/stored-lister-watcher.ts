import type { Exchange, Handler, Reply, WatchReply } from '../../../http/exchange/exchange.ts'
import { ownRequest, type RequestCredentials } from '../../../http/exchange/own-request.ts'
import type { WatchEvent } from '../../../api/codec/watch.ts'
import { pathOf } from '../../../api/kube/resources.ts'
import { RequestRefused, watchQuery, type ListerWatcher } from '../../../api/reflector/reflector.ts'
import { askingFor, type Representation } from '../../../api/request/representation.ts'
import type { CollectionKey } from '../../store/store.ts'
import { refusalOf } from '../refusal.ts'

/** How a cacher reaches the API servers. */
export interface UpstreamHandlers {
  /** Records each answer before it returns it: its content has been committed. */
  readonly recorded: Handler<Exchange, Reply>
}

/** The client in whose place a cacher reads from the API server. */
export interface ReflectorClient extends RequestCredentials {
  /** That of the client; absent: the hub's own. */
  readonly userAgent?: string
  /** Under which answers are recorded, whatever the User-Agent says; absent: as that says. */
  readonly component?: string
  /** Whether a watcher of the events needs the previous state of the objects. */
  readonly comparesEvents: () => boolean
}

interface ReflectedCollection {
  readonly key: CollectionKey
  readonly representation: Representation
  readonly upstream: UpstreamHandlers
  /** Called for each request: the newest credential counts. */
  readonly client: () => ReflectorClient
}

interface StoredListerWatcher extends Omit<ListerWatcher, 'list'> {
  /** As that of a `ListerWatcher`; resolves to the version of the list. */
  readonly list: (
    resourceVersion: Parameters<ListerWatcher['list']>[0],
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
  }
}

/** The events, all in this representation. */
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
    yield group
  }
}
