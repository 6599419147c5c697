import { selectionOf } from '../../../api/codec/selection.ts'
import type { Exchange } from '../../../http/exchange/exchange.ts'
import type { RequestCredentials } from '../../../http/exchange/own-request.ts'
import type { GVR } from '../../../api/kube/gvk.ts'
import {
  compareVersions,
  resourceVersion,
  type ResourceVersion,
} from '../../../api/kube/resource-version.ts'
import { covers } from '../../../api/kube/selectors.ts'
import type { Representation } from '../../../api/request/representation.ts'
import { areValidListOptions } from '../../../api/request/list-options.ts'
import { isTrue, type ResourceRequest } from '../../../api/request/request-info.ts'
import { collectionKey, selectorsOf } from '../../answers/keys.ts'
import type { CollectionKey, ObjectStore } from '../../store/store.ts'
import { onBehalfOf } from '../cacher/on-behalf-of.ts'
import { recordable } from '../policy.ts'
import type { WatchSelection } from '../cacher/cache-watcher.ts'

/** A read that a shared collection may answer, for whoever may read all of it. */
export interface SharedRead {
  readonly verb: 'get' | 'list' | 'watch'
  readonly exchange: Exchange
  readonly info: ResourceRequest
  readonly gvr: GVR
  readonly representation: Representation
  readonly selection: WatchSelection
  /** In whose name an API server is asked what the caller may do. */
  readonly onBehalf: RequestCredentials
  /** Tells readers apart. */
  readonly watcher: string
}

/**
 * What an exchange asks of a shared collection of one of `scope`; `undefined`: nothing. Callers who
 * impersonate others or have proved nothing, conversions (tables, metadata), fields that are not
 * known here and options that are refused are left to the API server.
 */
export function sharedRead(exchange: Exchange, scope: readonly GVR[]): SharedRead | undefined {
  if (!exchange.info.isResource || exchange.method !== 'GET') return undefined
  const { gvr } = exchange.info
  if (!scope.some((each) => isSame(each, gvr))) return undefined
  const what = recordable(exchange)
  const [representation] = exchange.representations
  const onBehalf = onBehalfOf(exchange)
  if (what === undefined || representation?.projection !== 'object' || onBehalf === undefined)
    return undefined
  if (what.kind !== 'object' && what.kind !== 'list' && what.kind !== 'watch') return undefined
  const { info } = what
  if (what.kind !== 'object' && !areValidListOptions(info.query, what.kind === 'watch'))
    return undefined
  const selectors = what.kind === 'object' ? nothing : selectorsOf(info)
  const { namespace } = info
  const within = { ...selectors, ...(namespace !== undefined && { namespace }) }
  const selection = selectionOf(gvr, within, representation)
  if (selection === undefined) return undefined
  const key = JSON.stringify([namespace ?? '', selectors.labelSelector, selectors.fieldSelector])
  return {
    verb: what.kind === 'object' ? 'get' : what.kind,
    exchange,
    info,
    gvr,
    representation,
    selection: { selection, key },
    onBehalf,
    watcher: JSON.stringify([exchange.identity, exchange.component, key]),
  }
}

const nothing = { labelSelector: '', fieldSelector: '' }

const isSame = (a: GVR, b: GVR): boolean =>
  a.resource === b.resource && a.group === b.group && a.version === b.version

/**
 * The newest version at which this caller itself was shown what it asks for or, where it never was,
 * more than that; `undefined` where it was shown neither, or is not recorded.
 */
export function lastObservedOf(
  { exchange, info }: SharedRead,
  store: ObjectStore,
): ResourceVersion | undefined {
  const keys = exchange.representations.map((representation) =>
    collectionKey(exchange, info, representation),
  )
  const own = keys.map((key) => store.version(key)).filter((version) => version !== undefined)
  const told = own.length > 0 ? own : keys.flatMap((key) => versionsOfWider(key, store))
  return told
    .flatMap((version) => resourceVersion(version) ?? [])
    .toSorted(compareVersions)
    .at(-1)
}

const versionsOfWider = (asked: CollectionKey, store: ObjectStore): string[] =>
  store
    .collections(asked.partition, asked.gvr, asked.namespace)
    .filter(({ key }) => covers(key, asked))
    .map((wider) => wider.resourceVersion)

export const takesBookmarks = ({ info }: SharedRead): boolean =>
  isTrue(info.query.get('allowWatchBookmarks'))
