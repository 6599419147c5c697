import { resourceVersion, type ResourceVersion } from '../../../api/kube/resource-version.ts'
import { isTrue, type ResourceRequest } from '../../../api/request/request-info.ts'

/** How a list or watch begins. */
export type ReadStart =
  /** The state, no older than `least`; with `ends`, told of its end. */
  | {
      readonly kind: 'state'
      readonly notOlderThan: ResourceVersion | undefined
      readonly bookmarkAtEnd: boolean
    }
  /** The most recent state, which online only an API server knows. */
  | { readonly kind: 'consistent'; readonly bookmarkAtEnd: boolean }
  /** What comes after a version. */
  | { readonly kind: 'after'; readonly version: ResourceVersion }
  /**
   * Exactly one version, a further page, or what is refused: left to the API server, and offline to
   * what the caller itself was shown.
   */
  | { readonly kind: 'delegated' }

const delegated = { kind: 'delegated' } as const

/** As apiserver pkg/storage/cacher understands what is asked for. */
export function watchStart({ query }: ResourceRequest): ReadStart {
  const asked = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const version = resourceVersion(asked)
  if (version === undefined && asked !== '' && asked !== '0') return delegated
  if (isTrue(query.get('sendInitialEvents'))) {
    if (match !== 'NotOlderThan') return delegated
    if (asked === '') return { kind: 'consistent', bookmarkAtEnd: true }
    return { kind: 'state', notOlderThan: version, bookmarkAtEnd: true }
  }
  if (match !== '' || query.has('sendInitialEvents')) return delegated
  if (version !== undefined) return { kind: 'after', version }
  // An API server answers a watch without a version from its cache, like one from version 0, and
  // takes both for WatchLists.
  return { kind: 'state', notOlderThan: undefined, bookmarkAtEnd: true }
}

export function listStart({ query }: ResourceRequest): ReadStart {
  const asked = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const version = resourceVersion(asked)
  if (query.get('continue') || (match !== '' && match !== 'NotOlderThan')) return delegated
  if (asked === '') return { kind: 'consistent', bookmarkAtEnd: false }
  if (asked === '0') return { kind: 'state', notOlderThan: undefined, bookmarkAtEnd: false }
  // With a limit it is that version exactly, page by page.
  const isPaged = Number(query.get('limit') ?? 0) !== 0
  if (version === undefined || isPaged) return delegated
  return { kind: 'state', notOlderThan: version, bookmarkAtEnd: false }
}
