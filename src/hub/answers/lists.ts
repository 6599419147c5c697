import { objectKind } from '../../api/codec/list.ts'
import type { Exchange, ListReply } from '../../http/exchange/exchange.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import { listOptionsOf, refuseVersionOfPage } from '../../api/request/list-options.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import type { ObjectStore, StoredList } from '../store/store.ts'
import { refuseNoVersion, refuseOtherVersions } from './asked-version.ts'
import { listReply } from './replies.ts'
import { storedList, type Source } from './source.ts'
import { withStaleness } from './staleness.ts'

/** What a list shows in place of what is stored; `objects` is the kind of its objects. */
export type ShownAs = (stored: StoredList, objects: GVK) => StoredList

/**
 * Answers a list while no API server can be asked: at the newest version that one gave for it,
 * whole whatever its limit. 504 where a newer version is asked for, 410 for exactly another or a
 * further page; what an API server refuses is refused in its words. `undefined` where `source`
 * cannot be read whole.
 */
export function offlineList(
  exchange: Exchange,
  info: ResourceRequest,
  source: Source,
  store: ObjectStore,
  shownAs: ShownAs = (stored) => stored,
): ListReply | undefined {
  const options = listOptionsOf(info.query, false, true)
  refuseVersionOfPage(options)
  // The version of `source` may be that of events which are still being written.
  const version = store.committedVersion(source.key)
  if (version === undefined) return undefined
  refuseNoVersion(options.resourceVersion, version, 'list')
  refuseOtherVersions(options, version)
  const stored = storedList(source, store)
  if (!stored) return undefined
  const reply = listReply(source.representation, shownAs(stored, objectKind(stored.gvk)))
  return { ...reply, headers: withStaleness(reply.headers, exchange, stored.confirmedAt) }
}
