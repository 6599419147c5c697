import { resourceVersion, type ResourceVersion } from '../../../api/kube/resource-version.ts'
import { isTrue, type ResourceRequest } from '../../../api/request/request-info.ts'

/** Where a watch begins. */
export type ReadStart =
  /** With the state, not older than a version. */
  | { readonly kind: 'state'; readonly notOlderThan: ResourceVersion | undefined }
  /** With a consistent read, which online only an API server can answer. */
  | { readonly kind: 'consistent' }
  /** With the events after a version. */
  | { readonly kind: 'after'; readonly version: ResourceVersion }
  /**
   * One exact version, a further page, or invalid options: online the API server answers, and
   * offline the caller's own records.
   */
  | { readonly kind: 'delegated' }

const delegated = { kind: 'delegated' } as const

/** As apiserver pkg/storage/cacher reads the options. */
export function watchStart({ query }: ResourceRequest): ReadStart {
  const requested = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const version = resourceVersion(requested)
  if (version === undefined && requested !== '' && requested !== '0') return delegated
  if (isTrue(query.get('sendInitialEvents'))) {
    if (match !== 'NotOlderThan') return delegated
    if (requested === '') return { kind: 'consistent' }
    return { kind: 'state', notOlderThan: version }
  }
  if (match !== '' || query.has('sendInitialEvents')) return delegated
  if (version !== undefined) return { kind: 'after', version }
  // An API server answers a watch without a version from its watch cache, as one from version 0,
  // and treats both as WatchLists.
  return { kind: 'state', notOlderThan: undefined }
}
