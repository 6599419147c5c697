import {
  because,
  isProven,
  type Exchange,
  type Reply,
  type WatchReply,
} from '../../http/exchange/exchange.ts'
import { impersonates } from '../../http/exchange/headers.ts'
import { StatusError, unauthorized } from '../../api/kube/status.ts'
import { areUnderstood } from '../../api/request/list-options.ts'
import { isReview, isTokenRequest, type ResourceRequest } from '../../api/request/request-info.ts'
import {
  localDocument,
  localList,
  localObject,
  localTable,
  needsTheCloud,
  neverCached,
} from './offline-reads.ts'
import { relayedToKubelet, type AtKubeletParts } from './at-kubelet.ts'
import { readOnSite } from './on-site-reads.ts'
import { localWrite, type OfflineWriteParts } from './offline-writes.ts'

export interface OfflineParts extends OfflineWriteParts, AtKubeletParts {
  /**
   * Answers a watch from the store; `undefined`: no stored collection covers it. Throws the
   * StatusError of an API server for invalid options.
   */
  readonly watch: (exchange: Exchange, info: ResourceRequest) => WatchReply | undefined
}

/** Throws the StatusError for a caller with a token that no API server has accepted. */
export function refuseUnproven(exchange: Exchange): void {
  if (isProven(exchange)) return
  const reason =
    'no API server has accepted this token, and it has no known signature of the cluster'
  throw new StatusError(unauthorized(), { reason })
}

/** Answers from the cache; throws a `StatusError` where it cannot. */
export async function answerLocally(exchange: Exchange, parts: OfflineParts): Promise<Reply> {
  refuseUnproven(exchange)
  // Only an API server can decide whether a caller may impersonate.
  if (impersonates(exchange.headers)) throw neverCached()
  const { info } = exchange
  const { store } = parts
  if (!info.isResource) {
    if (info.verb !== 'get' || info.ambiguous === true) throw neverCached()
    return localDocument(exchange, store)
  }
  const ofKubelet = await relayedToKubelet(exchange, info, parts)
  if (ofKubelet) return because(ofKubelet, 'the kubelet of this node answers for its pods')
  if (!areUnderstood(info.query)) throw needsTheCloud()
  if (info.verb !== 'get' && info.verb !== 'list' && info.verb !== 'watch') {
    return because(await localWrite(exchange, info, parts), localWriteReason(info))
  }
  if (info.subresource !== undefined || exchange.upgrade) throw needsTheCloud()
  if (exchange.method === 'HEAD') throw neverCached()
  if (info.verb === 'watch') {
    const reply = info.name === undefined ? parts.watch(exchange, info) : undefined
    if (!reply) throw neverCached()
    return reply
  }
  const local = info.verb === 'get' ? localObject : localList
  const exact = (): Reply => localTable(exchange, info, store) ?? local(exchange, info, store)
  return readOnSite(exchange, info, parts, exact)
}

const localWriteReason = (info: ResourceRequest): string =>
  isTokenRequest(info)
    ? 'an API server has issued this token before'
    : isReview(info)
      ? 'recorded answers decide the review'
      : 'the write is accepted at the node, and its component repeats it'
