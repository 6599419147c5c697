import { objectKind } from '../../api/codec/list.ts'
import type { Exchange, ListReply } from '../../http/exchange/exchange.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import { listOptionsOf, refuseVersionWithContinue } from '../../api/request/list-options.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import type { ObjectStore, StoredList } from '../store/store.ts'
import { refuseInvalidVersion, refuseOtherListVersion } from './requested-version.ts'
import { listReply } from './replies.ts'
import { storedList, type CoveringCollection } from './covering-collection.ts'
import { withStaleness } from './staleness.ts'

/** Replaces stored objects in a list by those that the client is to see; `gvk` is their kind. */
export type Overlay = (
  stored: StoredList,
  objects: { readonly kind: GVK; readonly representation: Representation },
) => StoredList

/**
 * Answers a list while no API server is healthy: at the newest stored version, in one page whatever
 * the limit. Throws 504 for a newer version, 410 for exactly another one or a further page, and an
 * API server's error for invalid options, whatever is stored. `overlay` replaces stored objects by
 * those that the client is to see. `undefined` where `collection` is, or cannot be read whole.
 */
export function offlineList(
  exchange: Exchange,
  info: ResourceRequest,
  collection: CoveringCollection | undefined,
  store: ObjectStore,
  overlay: Overlay = (stored) => stored,
): ListReply | undefined {
  const options = listOptionsOf(info.query, false, true)
  refuseVersionWithContinue(options)
  if (!collection) return undefined
  const version = collection.resourceVersion
  refuseInvalidVersion(options.resourceVersion, version, 'list')
  refuseOtherListVersion(options, version)
  const stored = storedList(collection, store)
  if (!stored) return undefined
  const { representation } = collection
  const reply = listReply(
    representation,
    overlay(stored, { kind: objectKind(stored.gvk), representation }),
  )
  return { ...reply, headers: withStaleness(reply.headers, exchange, stored.confirmedAt) }
}
