import { tableOfRow } from '../../api/codec/object.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import { covers, selectorOfName } from '../../api/kube/selectors.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { refusalOfNewer } from './requested-version.ts'
import { memberKey } from './keys.ts'
import type { StoredCollection, ObjectStore, StoredObject } from '../store/store.ts'

/**
 * One object as a Table: as stored from a get (`got`) or, where a Table of many is newer, the
 * object's row there under that Table's columns, or 'absent' where it has no such row. A server
 * gives a Table the same columns whatever its number of rows.
 */
export function storedTable(
  exchange: Exchange,
  info: ResourceRequest,
  representation: Representation,
  store: ObjectStore,
  got: StoredObject | 'absent' | undefined,
): StoredObject | 'absent' | undefined {
  const key = memberKey(exchange, info, representation)
  const row = store.get(key)
  if (row === undefined) return got
  const lists = (): StoredCollection[] => store.collections(key.partition, key.gvr, key.namespace)
  const known = typeof got === 'object' ? got : undefined
  if (row === 'absent') {
    const named = { labelSelector: '', fieldSelector: selectorOfName(key.name) }
    const isNewer = (list: StoredCollection): boolean =>
      covers(list.key, named) &&
      (!known || refusalOfNewer(list.resourceVersion, known.confirmedVersion) !== undefined)
    return lists().some(isNewer) ? 'absent' : got
  }
  if (known && !refusalOfNewer(row.confirmedVersion, known.confirmedVersion)) return known
  const columns = columnsOf(lists(), store)
  if (columns === undefined) return got
  return { ...row, object: tableOfRow(row.gvk, row.object, columns) }
}

/** The columns of any of these lists. */
function columnsOf(lists: readonly StoredCollection[], store: ObjectStore): string | undefined {
  for (const { key } of lists) {
    // Disposed of unread: only its columns are needed.
    using list = store.list(key)
    if (list?.extra) return list.extra
  }
  return undefined
}
