import { selectionOf } from '../../../api/codec/selection.ts'
import type { Exchange } from '../../../http/exchange/exchange.ts'
import type { RequestCredentials } from '../../../http/exchange/own-request.ts'
import type { GVR } from '../../../api/kube/gvk.ts'
import { newestVersion, type ResourceVersion } from '../../../api/kube/resource-version.ts'
import { sharedIdentity } from '../../../api/request/identity.ts'
import type { Representation } from '../../../api/request/representation.ts'
import { areValidListOptions } from '../../../api/request/list-options.ts'
import { isTrue, type ResourceRequest } from '../../../api/request/request-info.ts'
import { widerCollections } from '../../answers/covering-collection.ts'
import { collectionKey, selectorsOf } from '../../answers/keys.ts'
import type { CollectionKey, ObjectStore } from '../../store/store.ts'
import { requestCredentialsOf } from '../cacher/request-credentials.ts'
import { recordable } from '../recordable.ts'
import type { WatchSelection } from '../cacher/cache-watcher.ts'

/** A read that a shared cacher may answer, for callers who may read the whole collection. */
export interface SharedRead {
  readonly verb: 'get' | 'list' | 'watch'
  readonly exchange: Exchange
  readonly info: ResourceRequest
  readonly gvr: GVR
  readonly representation: Representation
  readonly selection: WatchSelection
  /** The caller's credentials, for access reviews. */
  readonly credentials: RequestCredentials
  /** Identifies the watcher: by identity, component and selection. */
  readonly watcher: string
}

/**
 * The read of a shared collection by an exchange; `undefined`: it is none, or is left to the API
 * server. Those are resources outside `scope`, callers who impersonate others or are not proven,
 * conversions (tables, metadata), field selectors that the hub does not know, and options that an
 * API server refuses.
 */
export function sharedRead(exchange: Exchange, scope: readonly GVR[]): SharedRead | undefined {
  if (!exchange.info.isResource || exchange.method !== 'GET') return undefined
  const { gvr } = exchange.info
  if (!scope.some((each) => isSame(each, gvr))) return undefined
  const what = recordable(exchange)
  const [representation] = exchange.representations
  const credentials = requestCredentialsOf(exchange)
  if (what === undefined || representation?.projection !== 'object' || credentials === undefined)
    return undefined
  if (what.kind !== 'object' && what.kind !== 'list' && what.kind !== 'watch') return undefined
  const { info } = what
  if (what.kind !== 'object' && !areValidListOptions(info.query, what.kind === 'watch'))
    return undefined
  const selectors = what.kind === 'object' ? nothing : selectorsOf(info)
  const { namespace } = info
  const scopeOfRead = { ...selectors, ...(namespace !== undefined && { namespace }) }
  const selection = selectionOf(gvr, scopeOfRead, representation)
  if (selection === undefined) return undefined
  const key = JSON.stringify([namespace ?? '', selectors.labelSelector, selectors.fieldSelector])
  return {
    verb: what.kind === 'object' ? 'get' : what.kind,
    exchange,
    info,
    gvr,
    representation,
    selection: { selection, key },
    credentials,
    watcher: JSON.stringify([exchange.identity, exchange.component, key]),
  }
}

/** Under which a shared collection is stored. */
export const sharedKey = ({
  gvr,
  representation,
}: Pick<SharedRead, 'gvr' | 'representation'>): CollectionKey => ({
  partition: { identity: sharedIdentity, representation: representation.key },
  gvr,
  labelSelector: '',
  fieldSelector: '',
})

const nothing = { labelSelector: '', fieldSelector: '' }

const isSame = (a: GVR, b: GVR): boolean =>
  a.resource === b.resource && a.group === b.group && a.version === b.version

/**
 * The version of the caller's own record of the collection or, without one, of its records of wider
 * collections; `undefined` without any. `versionOf` returns that of a record: `version` of the
 * store, or `committedVersion` for what the record would answer now.
 */
export function ownVersion(
  { exchange, info }: SharedRead,
  store: ObjectStore,
  versionOf: 'version' | 'committedVersion',
): ResourceVersion | undefined {
  const keys = exchange.representations.map((representation) =>
    collectionKey(exchange, info, representation),
  )
  const own = keys.map((key) => store[versionOf](key)).filter((version) => version !== undefined)
  if (own.length > 0) return newestVersion(own)
  const wider = keys.flatMap((key) => widerCollections(key, store))
  return newestVersion(wider.map((each) => each.resourceVersion))
}

export const takesBookmarks = ({ info }: SharedRead): boolean =>
  isTrue(info.query.get('allowWatchBookmarks'))
