import { selectionOf } from '../../codec/selection.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import type { OnBehalf } from '../../exchange/own-request.ts'
import { isProven } from '../../exchange/proven.ts'
import type { GVR } from '../../kube/gvk.ts'
import {
  compareVersions,
  resourceVersion,
  type ResourceVersion,
} from '../../kube/resource-version.ts'
import { covers } from '../../kube/selectors.ts'
import type { Form } from '../../request/form.ts'
import { areAccepted } from '../../request/list-options.ts'
import { isTrue, type ResourceRequest } from '../../request/request-info.ts'
import { collectionKey, selectorsOf } from '../../store/keys.ts'
import type { CollectionKey, ObjectStore } from '../../store/store.ts'
import { recordable } from '../policy.ts'
import type { Selected } from './reader.ts'

/** A read that a shared collection may answer, for whoever may read all of it. */
export interface SharedAsk {
  readonly verb: 'get' | 'list' | 'watch'
  readonly exchange: Exchange
  readonly info: ResourceRequest
  readonly gvr: GVR
  readonly form: Form
  readonly selected: Selected
  /** In whose name an API server is asked what the caller may do. */
  readonly who: OnBehalf
  /** Tells readers apart. */
  readonly reader: string
}

/**
 * What an exchange asks of a shared collection of one of `scope`; `undefined`: nothing. Callers who
 * impersonate others or have proved nothing, conversions (tables, metadata), fields that are not
 * known here and options that are refused are left to the API server.
 */
export function sharedAsk(exchange: Exchange, scope: readonly GVR[]): SharedAsk | undefined {
  if (!exchange.info.isResource || exchange.method !== 'GET') return undefined
  const { gvr } = exchange.info
  if (!scope.some((each) => isSame(each, gvr))) return undefined
  const what = recordable(exchange)
  const [form] = exchange.forms
  const who = whoAsks(exchange)
  if (what === undefined || form?.shape !== 'object' || who === undefined) return undefined
  if (what.kind !== 'object' && what.kind !== 'list' && what.kind !== 'watch') return undefined
  const { info } = what
  if (what.kind !== 'object' && !areAccepted(info.query, what.kind === 'watch')) return undefined
  const selectors = what.kind === 'object' ? nothing : selectorsOf(info)
  const { namespace } = info
  const within = { ...selectors, ...(namespace !== undefined && { namespace }) }
  const selection = selectionOf(gvr, within, form)
  if (selection === undefined) return undefined
  const key = JSON.stringify([namespace ?? '', selectors.labelSelector, selectors.fieldSelector])
  return {
    verb: what.kind === 'object' ? 'get' : what.kind,
    exchange,
    info,
    gvr,
    form,
    selected: { selection, key },
    who,
    reader: JSON.stringify([exchange.identity, exchange.component, key]),
  }
}

const nothing = { labelSelector: '', fieldSelector: '' }

const isSame = (a: GVR, b: GVR): boolean =>
  a.resource === b.resource && a.group === b.group && a.version === b.version

function whoAsks(exchange: Exchange): OnBehalf | undefined {
  if (!isProven(exchange)) return undefined
  const { identity, credential, headers, claim } = exchange
  if (credential === 'node') return { identity, credential }
  const authorization = headers.get('authorization')
  if (authorization === undefined) return undefined
  return { identity, credential, authorization, ...(claim && { claim }) }
}

/** How a list or watch begins. */
export type Begins =
  /** The state, no older than `least`; with `ends`, told of its end. */
  | { readonly kind: 'state'; readonly least: ResourceVersion | undefined; readonly ends: boolean }
  /** The most recent state, which online only an API server knows. */
  | { readonly kind: 'newest-state'; readonly ends: boolean }
  /** What comes after a version. */
  | { readonly kind: 'after'; readonly version: ResourceVersion }
  /**
   * Exactly one version, a further page, or what is refused: left to the API server, and offline to
   * what the caller itself was shown.
   */
  | { readonly kind: 'other' }

const other = { kind: 'other' } as const

/** As apiserver pkg/storage/cacher understands what is asked for. */
export const beginsAs = ({ verb, info }: SharedAsk): Begins =>
  verb === 'watch' ? watchBegins(info) : listBegins(info)

function watchBegins({ query }: ResourceRequest): Begins {
  const asked = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const version = resourceVersion(asked)
  if (version === undefined && asked !== '' && asked !== '0') return other
  if (isTrue(query.get('sendInitialEvents'))) {
    if (match !== 'NotOlderThan') return other
    if (asked === '') return { kind: 'newest-state', ends: true }
    return { kind: 'state', least: version, ends: true }
  }
  if (match !== '' || query.has('sendInitialEvents')) return other
  if (version !== undefined) return { kind: 'after', version }
  // An API server answers a watch without a version from its cache, like one from version 0, and
  // takes both for WatchLists.
  return { kind: 'state', least: undefined, ends: true }
}

function listBegins({ query }: ResourceRequest): Begins {
  const asked = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const version = resourceVersion(asked)
  if (query.get('continue') || (match !== '' && match !== 'NotOlderThan')) return other
  if (asked === '') return { kind: 'newest-state', ends: false }
  if (asked === '0') return { kind: 'state', least: undefined, ends: false }
  // With a limit it is that version exactly, page by page.
  const isPaged = Number(query.get('limit') ?? 0) !== 0
  if (version === undefined || isPaged) return other
  return { kind: 'state', least: version, ends: false }
}

/**
 * The newest version at which this caller itself was shown what it asks for or, where it never was,
 * more than that; `undefined` where it was shown neither, or is not recorded.
 */
export function ownVersion(
  { exchange, info }: SharedAsk,
  store: ObjectStore,
): ResourceVersion | undefined {
  const keys = exchange.forms.map((form) => collectionKey(exchange, info, form))
  const own = keys.map((key) => store.version(key)).filter((version) => version !== undefined)
  const told = own.length > 0 ? own : keys.flatMap((key) => versionsOfWider(key, store))
  return told
    .flatMap((version) => resourceVersion(version) ?? [])
    .toSorted(compareVersions)
    .at(-1)
}

const versionsOfWider = (asked: CollectionKey, store: ObjectStore): string[] =>
  store
    .collections(asked.audience, asked.gvr, asked.namespace)
    .filter(({ key }) => covers(key, asked))
    .map((wider) => wider.resourceVersion)

export const takesBookmarks = ({ info }: SharedAsk): boolean =>
  isTrue(info.query.get('allowWatchBookmarks'))
