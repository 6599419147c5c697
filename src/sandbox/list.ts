import { sleep } from '../base/clock.ts'
import { parseJson } from '../api/kube/json.ts'
import { textAt, valueAt } from '../api/kube/json-at.ts'
import { namespacedName } from '../api/kube/object.ts'
import {
  badRequest,
  expired,
  StatusError,
  timeout,
  tooLargeResourceVersion,
} from '../api/kube/status.ts'
import {
  refuseVersionWithContinue,
  versionNumber,
  isExactList,
  type ListOptions,
} from '../api/request/list-options.ts'
import type { Kind } from './kinds.ts'
import type { KubeObject } from './object.ts'
import type { SelectionPredicate } from './selection-predicate.ts'
import type { View } from './storage.ts'

export interface ListResult {
  readonly objects: readonly KubeObject[]
  readonly version: string
  readonly continue: string
  readonly remaining: number | undefined
}

/**
 * The objects of a list in order of their keys, by the version rules of the API (apiserver
 * pkg/storage/cacher and pkg/storage/etcd3/store.go). Throws a StatusError: 410 for a version that
 * is forgotten, 504 for one that does not come in time.
 */
export async function list(
  view: View,
  kind: Kind,
  selection: SelectionPredicate,
  options: ListOptions,
  freshnessMs: number,
): Promise<ListResult> {
  const token = options.continue === '' ? undefined : decodeContinue(options)
  const version = token
    ? continuedVersion(view, token)
    : await startingVersion(view, options, freshnessMs)
  const from = token?.start ?? ''
  const all = [...view.at(kind, version)]
    .filter(([key, object]) => selection.selects(object) && key >= from)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, object]) => object)
  // A list of any version is not paged.
  const limit = options.resourceVersion === '0' && !token ? 0 : options.limit
  const page = limit > 0 ? all.slice(0, limit) : all
  const last = page.at(-1)
  const more = page.length < all.length && last !== undefined
  return {
    objects: page,
    version: String(version),
    continue: more ? encodeContinue(version, `${namespacedName(last.metadata)}\0`) : '',
    remaining: more && !selection.selective ? all.length - page.length : undefined,
  }
}

async function startingVersion(
  view: View,
  options: ListOptions,
  freshnessMs: number,
): Promise<number> {
  const { resourceVersion } = options
  const requested = versionNumber(resourceVersion, 'list')
  if (requested === 0) return resourceVersion === '0' ? view.version : view.newest
  await waitUntilFresh(view, requested, freshnessMs)
  if (!isExactList(options)) return view.version
  if (requested < view.compacted) {
    throw new StatusError(expired('The resourceVersion for the provided list is too old.'))
  }
  return requested
}

/**
 * Resolves once the view shows `version`, as apiserver's cacher waits (waitUntilFreshAndBlock).
 * Throws a StatusError 504 where that takes longer than `waitMs`.
 */
export async function waitUntilFresh(view: View, version: number, waitMs: number): Promise<void> {
  if (version <= view.version) return
  const came = new AbortController()
  using _ = view.follow(() => {
    if (version <= view.version) came.abort()
  })
  await sleep(waitMs, came.signal)
  if (version > view.version) {
    throw new StatusError(tooLargeResourceVersion(String(version), String(view.version)))
  }
}

interface ContinueToken {
  readonly rv: number
  readonly start: string
}

const encodeContinue = (rv: number, start: string): string =>
  Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv, start })).toString('base64url')

function decodeContinue(options: ListOptions): ContinueToken {
  refuseVersionWithContinue(options)
  const read = parseJson(Buffer.from(options.continue, 'base64url').toString())
  const [rv, start] = [valueAt(read, 'rv'), textAt(read, 'start')]
  const isKnown = textAt(read, 'v') === 'meta.k8s.io/v1' && Number.isSafeInteger(rv) && start !== ''
  if (!isKnown)
    throw new StatusError(badRequest('invalid continue token: continue key is not valid'))
  return { rv: Number(rv), start }
}

function continuedVersion(view: View, { rv }: ContinueToken): number {
  if (rv > view.newest) {
    throw new StatusError(timeout('etcdserver: mvcc: required revision is a future revision'))
  }
  if (rv < view.compacted)
    throw new StatusError(expired('The provided continue parameter is too old'))
  return rv
}
