import type { Wanted } from '../cache/recorder.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { compareVersions, resourceVersion, type ResourceVersion } from '../kube/resource-version.ts'
import { areAccepted } from '../request/list-options.ts'
import { isTrue } from '../request/request-info.ts'

/**
 * Whether only the cloud may answer, as long as any API server answers its probe. True of writes, and of reads that name no resource
 * version (a get, a list, a watch that begins with a list): those ask for the most recent state, which a cache cannot promise.
 */
export function wantsTheCloud({ method, info }: Exchange): boolean {
  if (method !== 'GET' && method !== 'HEAD') return true
  if (!info.isResource) return false
  const { verb, query } = info
  const isList = verb === 'get' || verb === 'list' || isTrue(query.get('sendInitialEvents'))
  return isList && !query.get('resourceVersion')
}

/**
 * The newest resource version at which this caller was shown a collection, where it asks for its state of any age (a list or WatchList of
 * version 0, or a get of an object in it): a lagging API server must not answer with an older one. `otherwise` is asked what the caller was shown that is not its own. `undefined` where the caller
 * was shown none, and for all other requests.
 */
export function toldOf(
  what: Wanted,
  otherwise: () => ResourceVersion | undefined = () => undefined,
): ResourceVersion | undefined {
  if (what.kind === 'document' || what.kind === 'token') return undefined
  const { query, verb } = what.info
  if (what.kind === 'object') {
    return verb === 'get' && query.get('resourceVersion') === '0' ? otherwise() : undefined
  }
  const isWatch = what.kind === 'watch'
  if (isWatch && !isTrue(query.get('sendInitialEvents'))) return undefined
  const match = query.get('resourceVersionMatch') ?? ''
  const ofAnyAge = query.get('resourceVersion') === '0' && !query.get('continue')
  if (!ofAnyAge || (match !== '' && match !== 'NotOlderThan')) return undefined
  // What is refused is not to be made something that is not.
  if (!areAccepted(query, isWatch)) return undefined
  const told = [...(what.kept?.values() ?? [])].flatMap((kept) => resourceVersion(kept) ?? [])
  return [...told, ...[otherwise() ?? []].flat()].sort(compareVersions).at(-1)
}

/**
 * The URL of the same list, not older than `version`. The limit is left out: at version 0 an API server ignores it, but with a version it
 * would read page by page from etcd (apiserver pkg/storage/cacher, shouldDelegateList).
 */
export function notOlderThan(url: string, version: ResourceVersion): string {
  return withQuery(url, (query) => {
    query.set('resourceVersion', version)
    query.set('resourceVersionMatch', 'NotOlderThan')
  })
}

/**
 * The URL of the same WatchList, of the most recent state: one not older than a version is refused within the stream, where that version
 * does not come, and a client that takes any does not expect that.
 */
export const mostRecentState = (url: string): string =>
  withQuery(url, (query) => query.set('resourceVersionMatch', 'NotOlderThan'))

/** The URL of the same list, read consistently. */
export const mostRecent = (url: string): string => withQuery(url, () => undefined)

function withQuery(url: string, change: (query: URLSearchParams) => void): string {
  const [path, ...rest] = url.split('?')
  const query = new URLSearchParams(rest.join('?'))
  for (const name of ['resourceVersion', 'resourceVersionMatch', 'limit']) query.delete(name)
  change(query)
  return query.size === 0 ? `${path}` : `${path}?${query}`
}
