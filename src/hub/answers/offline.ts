import type { Exchange, Reply, WatchReply } from '../../http/exchange/exchange.ts'
import { impersonates } from '../../http/exchange/headers.ts'
import { isProven } from '../../http/exchange/proven.ts'
import { StatusError, unauthorized } from '../../api/kube/status.ts'
import { isTrue, type ResourceRequest } from '../../api/request/request-info.ts'
import {
  localDocument,
  localList,
  localObject,
  needsTheCloud,
  neverCached,
} from './offline-reads.ts'
import { relayedToKubelet, type AtKubeletParts } from './at-kubelet.ts'
import { readOnSite } from './on-site-reads.ts'
import { localWrite, type OfflineWriteParts } from './offline-writes.ts'

export interface OfflineParts extends OfflineWriteParts, AtKubeletParts {
  /**
   * To be called before anything stored is given to a caller: throws the StatusError where it may
   * not have that.
   */
  readonly authorize: (exchange: Exchange) => void
  /**
   * Answers a watch from what is stored; `undefined`: no stored collection covers it. Throws the
   * StatusError of an API server for invalid options.
   */
  readonly watch: (exchange: Exchange, info: ResourceRequest) => WatchReply | undefined
}

/** Answers from the cache; throws a `StatusError` where it cannot. */
export async function answerLocally(exchange: Exchange, parts: OfflineParts): Promise<Reply> {
  if (!isProven(exchange)) throw new StatusError(unauthorized())
  // Only an API server can decide whether a caller may impersonate.
  if (impersonates(exchange.headers)) throw neverCached()
  const { info } = exchange
  const { store } = parts
  if (!info.isResource) {
    if (info.verb !== 'get' || info.ambiguous === true) throw neverCached()
    return localDocument(exchange, store)
  }
  const relayed = await relayedToKubelet(exchange, info, parts)
  if (relayed) return relayed
  if (info.verb !== 'get' && info.verb !== 'list' && info.verb !== 'watch') {
    return localWrite(exchange, info, parts)
  }
  if (info.subresource !== undefined || exchange.upgrade) throw needsTheCloud()
  if (exchange.method === 'HEAD') throw neverCached()
  switch (info.verb) {
    case 'get':
      return readOnSite(exchange, info, parts, (asked) =>
        localObject(asked, info, store, parts.overlays),
      )
    case 'list':
      return readOnSite(exchange, info, parts, (asked) =>
        localList(asked, info, store, parts.overlays),
      )
    case 'watch': {
      if (info.name !== undefined) throw neverCached()
      if (beginsWithState(info)) {
        parts.overlays.resetShown({ identity: exchange.identity, gvr: info.gvr })
      }
      const reply = parts.watch(exchange, info)
      if (!reply) throw neverCached()
      return reply
    }
  }
}

/** Whether a watch begins with all objects, which it shows without overlays. */
const beginsWithState = ({ query }: ResourceRequest): boolean =>
  isTrue(query.get('sendInitialEvents')) || ['', '0'].includes(query.get('resourceVersion') ?? '')
