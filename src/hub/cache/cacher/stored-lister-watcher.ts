import { onAbort } from '../../../base/abort.ts'
import { jitter, sleep } from '../../../base/clock.ts'
import type { Exchange, Handler, Reply, WatchReply } from '../../../http/exchange/exchange.ts'
import { ownRequest, type RequestCredentials } from '../../../http/exchange/own-request.ts'
import type { ResourceVersion } from '../../../api/kube/resource-version.ts'
import { collectionUrl } from '../../../api/kube/resources.ts'
import { watchQuery, type WatchOptions } from '../../../api/reflector/reflector.ts'
import { acceptFor, type Representation } from '../../../api/request/representation.ts'
import type { CollectionKey } from '../../store/store.ts'
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
  /** Called for each request: the newest credential counts. */
  readonly client: () => ReflectorClient
}

/** An open watch at an API server, whose events are not recorded yet. */
export interface UpstreamWatch extends Pick<WatchReply, 'events' | 'gvk'> {
  readonly exchange: Exchange
}

interface StoredListerWatcher {
  /**
   * Resolves to the version of the list. `resourceVersion` is '0' for a list of any age, '' for a
   * consistent read, or a version than which the list is not older.
   */
  readonly list: (
    resourceVersion: '' | '0' | ResourceVersion,
    signal: AbortSignal,
  ) => Promise<string>
  readonly watch: (options: WatchOptions, signal: AbortSignal) => Promise<UpstreamWatch>
}

/** Reads a collection, its lists into the store. */
export function storedListerWatcher(of: ReflectedCollection): StoredListerWatcher {
  const { key, representation, upstream } = of
  const { labelSelector, fieldSelector } = key
  const selectors = { labelSelector, fieldSelector }
  const request = (
    verb: 'list' | 'watch',
    query: Record<string, string>,
    signal: AbortSignal,
  ): Exchange =>
    ownRequest({
      method: 'GET',
      ...of.client(),
      url: collectionUrl(key.gvr, key.namespace, { ...selectors, ...query }),
      accept: acceptFor(representation, verb),
      gzip: true,
      signal,
    })
  return {
    list: async (resourceVersion, signal) => {
      const reply = await upstream.recorded(request('list', { resourceVersion }, signal))
      if (reply.kind !== 'list' || reply.representation.key !== representation.key)
        throw refusalOf(reply)
      for await (const _ of reply.list.batches) signal.throwIfAborted()
      return (await reply.list.end()).meta.resourceVersion
    },
    watch: async (options, signal) => {
      const exchange = request('watch', watchQuery(options), signal)
      const reply = await upstream.decoded(exchange)
      if (reply.kind !== 'watch') throw refusalOf(reply)
      return { exchange, events: reply.events, gvk: reply.gvk }
    },
  }
}

/** Whether the hub can reach API servers with a cacher's credential. */
export interface Connectivity {
  readonly online: () => boolean | undefined
  /** Aborts when `online` changes. */
  readonly changed: () => AbortSignal
}

/** Upstream watches resume at random times within this after an outage. */
const resumeMs = 1_000

/**
 * Resolves when the hub can reach an API server, and then a little later: others resume as well.
 */
export async function untilReachable(link: () => Connectivity, signal: AbortSignal): Promise<void> {
  let waited = false
  while (link().online() !== true && !signal.aborted) {
    waited = true
    const { promise, resolve } = Promise.withResolvers<void>()
    using _left = onAbort(signal, resolve)
    using _changed = onAbort(link().changed(), resolve)
    await promise
  }
  if (waited && !signal.aborted) await sleep(jitter(0, resumeMs), signal)
}
