import { resourceVersion, type ResourceVersion } from '../../../api/kube/resource-version.ts'
import { isTrue, type ResourceRequest } from '../../../api/request/request-info.ts'

/** How a list or watch begins. */
export type ReadStart =
  /** The state, no older than `least`; with `ends`, told of its end. */
  | {
      readonly kind: 'state'
      readonly notOlderThan: ResourceVersion | undefined
      readonly ends: boolean
    }
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
export function watchStart({ query }: ResourceRequest): ReadStart {
  const asked = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const version = resourceVersion(asked)
  if (version === undefined && asked !== '' && asked !== '0') return other
  if (isTrue(query.get('sendInitialEvents'))) {
    if (match !== 'NotOlderThan') return other
    if (asked === '') return { kind: 'newest-state', ends: true }
    return { kind: 'state', notOlderThan: version, ends: true }
  }
  if (match !== '' || query.has('sendInitialEvents')) return other
  if (version !== undefined) return { kind: 'after', version }
  // An API server answers a watch without a version from its cache, like one from version 0, and
  // takes both for WatchLists.
  return { kind: 'state', notOlderThan: undefined, ends: true }
}

export function listStart({ query }: ResourceRequest): ReadStart {
  const asked = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const version = resourceVersion(asked)
  if (query.get('continue') || (match !== '' && match !== 'NotOlderThan')) return other
  if (asked === '') return { kind: 'newest-state', ends: false }
  if (asked === '0') return { kind: 'state', notOlderThan: undefined, ends: false }
  // With a limit it is that version exactly, page by page.
  const isPaged = Number(query.get('limit') ?? 0) !== 0
  if (version === undefined || isPaged) return other
  return { kind: 'state', notOlderThan: version, ends: false }
}
