import type { Wanted } from '../cache/recorder.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { compareVersions, resourceVersion, type ResourceVersion } from '../kube/resource-version.ts'
import { isTrue } from '../request/request-info.ts'

/**
 * Whether a request must be answered by the cloud while any API server answers its probe: a read that names no version asks for the most
 * recent state (a get, a list, a watch that begins with one), which no cache can promise, and a write is lost on one.
 */
export function wantsTheCloud({ method, info }: Exchange): boolean {
  if (method !== 'GET' && method !== 'HEAD') return true
  if (!info.isResource) return false
  const { verb, query } = info
  const isList = verb === 'get' || verb === 'list' || isTrue(query.get('sendInitialEvents'))
  return isList && !query.get('resourceVersion')
}

/**
 * The newest version of a collection that this caller was told of, where it asks for a list of any age (version 0): an API server that
 * lags must not take it back there. `undefined` where nothing is known of it, and for all other requests.
 */
export function toldOf(what: Wanted): ResourceVersion | undefined {
  if (what.kind !== 'list') return undefined
  const { query } = what.info
  const match = query.get('resourceVersionMatch') ?? ''
  const ofAnyAge = query.get('resourceVersion') === '0' && !query.get('continue')
  if (!ofAnyAge || (match !== '' && match !== 'NotOlderThan')) return undefined
  const told = [...(what.kept?.values() ?? [])].flatMap((kept) => resourceVersion(kept) ?? [])
  return told.sort(compareVersions).at(-1)
}

/**
 * The same list, not older than `version`. Its limit is left out: an API server does not regard it where any age will do, but would read
 * page by page from etcd where a version is named (apiserver pkg/storage/cacher, shouldDelegateList).
 */
export function notOlderThan(url: string, version: ResourceVersion): string {
  return withQuery(url, (query) => {
    query.set('resourceVersion', version)
    query.set('resourceVersionMatch', 'NotOlderThan')
  })
}

/** The same list, the most recent that there is. */
export const mostRecent = (url: string): string => withQuery(url, () => undefined)

function withQuery(url: string, change: (query: URLSearchParams) => void): string {
  const [path, ...rest] = url.split('?')
  const query = new URLSearchParams(rest.join('?'))
  for (const name of ['resourceVersion', 'resourceVersionMatch', 'limit']) query.delete(name)
  change(query)
  return query.size === 0 ? `${path}` : `${path}?${query}`
}
