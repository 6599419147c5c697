import type { RecordingPlan } from '../cache/recorder.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import { isNewer, newestVersion, type ResourceVersion } from '../../api/kube/resource-version.ts'
import { areValidListOptions, listOptionsOf, isExactList } from '../../api/request/list-options.ts'
import { isTrue } from '../../api/request/request-info.ts'

/**
 * Whether only an API server may answer while any of them answers its probe: writes, and reads
 * without a resource version (a get, a list, a watch that begins with a list), which are consistent
 * reads.
 */
export function requiresUpstream({ method, info }: Exchange): boolean {
  if (method !== 'GET' && method !== 'HEAD') return true
  if (!info.isResource) return false
  const { verb, query } = info
  const isList = verb === 'get' || verb === 'list' || isTrue(query.get('sendInitialEvents'))
  return isList && !query.get('resourceVersion')
}

/**
 * The last observed version of a caller whose read accepts any age (a list or WatchList from
 * version 0, or a get from version 0): a lagging API server must not answer with an older one.
 * `otherwise` returns the version that the caller may have observed in shared or offline answers.
 * `undefined` where there is none, and for all other reads.
 */
export function lastObservedFor(
  plan: RecordingPlan,
  otherwise: () => ResourceVersion | undefined = () => undefined,
): ResourceVersion | undefined {
  if (plan.kind === 'document' || 'content' in plan) return undefined
  const { query, verb } = plan.info
  if (plan.kind === 'object') {
    return verb === 'get' && query.get('resourceVersion') === '0' ? otherwise() : undefined
  }
  const isWatch = plan.kind === 'watch'
  if (isWatch && !isTrue(query.get('sendInitialEvents'))) return undefined
  const match = query.get('resourceVersionMatch') ?? ''
  const ofAnyAge = query.get('resourceVersion') === '0' && !query.get('continue')
  if (!ofAnyAge || (match !== '' && match !== 'NotOlderThan')) return undefined
  // Invalid options must stay invalid.
  if (!areValidListOptions(query, isWatch)) return undefined
  return newestVersion([...(plan.storedVersions?.values() ?? []), plan.lastObserved, otherwise()])
}

/**
 * The same list, or watch that begins with the state, not older than `version`. `undefined` for all
 * other requests: one for an exact version, or a further page, is answered as it is; a get reads
 * one object, whose newest state is known.
 */
export function asNotOlderThan(exchange: Exchange, version: ResourceVersion): Exchange | undefined {
  const { info, url } = exchange
  if (!info.isResource || (info.verb !== 'list' && info.verb !== 'watch')) return undefined
  const { query } = info
  const isWatch = info.verb === 'watch'
  const requested = query.get('resourceVersion') ?? ''
  const isOfAnyAge = requested === '' || requested === '0'
  if (isWatch && !isTrue(query.get('sendInitialEvents'))) {
    // An API server treats a watch from any version as a WatchList, unless it says otherwise.
    if (!isOfAnyAge || query.has('sendInitialEvents')) return undefined
  }
  if (!areValidListOptions(query, isWatch)) return undefined
  const options = listOptionsOf(query, isWatch, true)
  if (options.continue !== '' || (!isWatch && !isOfAnyAge && isExactList(options))) return undefined
  if (!isOfAnyAge && !isNewer(version, requested)) return exchange
  const least = new URLSearchParams(query)
  least.set('resourceVersion', version)
  least.set('resourceVersionMatch', 'NotOlderThan')
  least.delete('limit')
  if (isWatch) least.set('sendInitialEvents', 'true')
  const [path] = url.split('?')
  return { ...exchange, url: `${path}?${least}`, info: { ...info, query: least } }
}

/**
 * The URL of the same list, not older than `version`, and without the limit: at version 0 an API
 * server ignores it, but with a version it would read page by page from etcd (apiserver
 * pkg/storage/cacher, shouldDelegateList).
 */
export function notOlderThanUrl(url: string, version: ResourceVersion): string {
  return withQuery(url, (query) => {
    query.set('resourceVersion', version)
    query.set('resourceVersionMatch', 'NotOlderThan')
  })
}

/**
 * The URL of the same WatchList as a consistent read: an API server refuses one that is not older
 * than a future version within the stream, which a client that accepts any version does not expect.
 */
export const consistentWatchListUrl = (url: string): string =>
  withQuery(url, (query) => query.set('resourceVersionMatch', 'NotOlderThan'))

/** The URL of the same list as a consistent read. */
export const consistentUrl = (url: string): string => withQuery(url, () => undefined)

function withQuery(url: string, change: (query: URLSearchParams) => void): string {
  const [path, ...rest] = url.split('?')
  const query = new URLSearchParams(rest.join('?'))
  for (const name of ['resourceVersion', 'resourceVersionMatch', 'limit']) query.delete(name)
  change(query)
  return query.size === 0 ? `${path}` : `${path}?${query}`
}
