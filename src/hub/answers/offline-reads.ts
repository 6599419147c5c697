import type { BodyReply, Exchange, ListReply, ObjectReply } from '../../http/exchange/exchange.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import {
  notFound,
  serviceUnavailable,
  StatusError,
  expired,
  tooLargeResourceVersion,
  type Status,
} from '../../api/kube/status.ts'
import {
  listOptionsOf,
  refuseVersionWithContinue,
  versionNumber,
  isExactList,
  type ListOptions,
} from '../../api/request/list-options.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import type { HeaderList } from '../../http/exchange/headers.ts'
import { answerHeaders, listReply, objectReply, withAge, withStaleness } from './replies.ts'
import { documentKeys, objectKey, tableKey } from './keys.ts'
import type { ObjectStore, StoredObject } from '../store/store.ts'
import { coveringCollection, storedList, wantedCollections } from './covering-collection.ts'
import { compareVersions, resourceVersion } from '../../api/kube/resource-version.ts'

/**
 * The 503 for objects that the cache does not hold. It has no Retry-After: client-go repeats a 503
 * with Retry-After after that time, and backs off without.
 */
export const neverCached = (): StatusError =>
  new StatusError(
    serviceUnavailable('the cloud cannot be reached, and the answer is not in the cache'),
  )

/** The 503 for requests that only an API server can answer: writes, exec, logs. */
export const needsTheCloud = (): StatusError =>
  new StatusError(
    serviceUnavailable('the cloud cannot be reached, and this cannot be done without it'),
  )

/**
 * Resources for which a 404 is fatal to a kubelet: it then creates the object, which fails offline,
 * and exits (kubernetes pkg/volume/csi/csi_plugin.go). They are answered 503 even where a stored
 * list shows that the object is absent.
 */
const neverAbsent = new Set(['csinodes.storage.k8s.io', 'leases.coordination.k8s.io'])

/**
 * The newest stored state of an object, in the first of the client's representations that has one.
 * Throws 404 where the object is known not to exist, else 503.
 */
export function storedObject(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
): { representation: Representation; stored: StoredObject } {
  let absent = false
  for (const representation of exchange.representations) {
    const found = store.get(objectKey(exchange, info, representation))
    if (found === 'absent') absent = true
    else if (found) return { representation, stored: found }
  }
  // Whether the object exists at a version that is newer than the stored lists is unknown.
  const isOfAnyAge = ['', '0'].includes(info.query.get('resourceVersion') ?? '')
  if (!absent || !isOfAnyAge || neverAbsent.has(qualifiedResource(info.gvr))) throw neverCached()
  throw new StatusError(notFound({ ...info.gvr, name: info.name ?? '' }))
}

/** The Table that the caller was last given for this get or list; `undefined`: there is none. */
export const storedTable = (
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
): StoredObject | undefined =>
  exchange.representations
    .values()
    .filter(({ projection }) => projection === 'table')
    .map((each) => tableKey(exchange, info, each))
    .map((key) => key && store.get(key))
    .find((found) => typeof found === 'object')

/** Answers a get or list by that Table. */
export function localTable(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
): BodyReply | undefined {
  const found = storedTable(exchange, info, store)
  if (!found) return undefined
  const headers = answerHeaders(found.object.uid)
  return documentReply(found, withStaleness(headers, exchange, found.confirmedAt))
}

/** Answers a get. */
export function localObject(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
): ObjectReply {
  const { representation, stored } = storedObject(exchange, info, store)
  refuseNewerGet(info, stored.confirmedVersion)
  const reply = objectReply(representation, stored)
  return { ...reply, headers: withStaleness(reply.headers, exchange, stored.confirmedAt) }
}

/**
 * Answers a list at the newest stored version, in one page whatever the limit. Throws 504 for a
 * newer version, 410 for exactly another one or a further page, and an API server's error for
 * invalid options, whatever is stored.
 */
export function localList(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
): ListReply {
  const options = listOptionsOf(info.query, false, true)
  refuseVersionWithContinue(options)
  const collection = coveringCollection(wantedCollections(exchange, info), store)
  if (!collection) throw neverCached()
  const { representation, resourceVersion } = collection
  refuseInvalidVersion(options.resourceVersion, resourceVersion, 'list')
  refuseOtherListVersion(options, resourceVersion)
  const stored = storedList(collection, store)
  if (!stored) throw neverCached()
  const reply = listReply(representation, stored)
  return { ...reply, headers: withStaleness(reply.headers, exchange, stored.confirmedAt) }
}

/**
 * Answers discovery, OpenAPI or the version, as the same caller was last answered, in its most
 * preferred representation that is stored.
 */
export function localDocument(exchange: Exchange, store: ObjectStore): BodyReply {
  const keys = documentKeys(exchange).values()
  const found = keys.map((key) => store.get(key)).find((document) => typeof document === 'object')
  if (!found) throw neverCached()
  // No Warning: kubectl reads discovery before its actual request, whose answer has one.
  return documentReply(found, withAge(answerHeaders(found.object.uid), found.confirmedAt))
}

const documentReply = ({ object }: StoredObject, headers: HeaderList): BodyReply => ({
  kind: 'body',
  from: 'cache',
  status: 200,
  headers,
  body: object.bytes,
})

/**
 * Throws a StatusError where the requested version is malformed. Aggregated API servers may issue
 * versions of their own syntax: if the stored one is not decimal, the hub checks nothing.
 */
export function refuseInvalidVersion(
  requested: string,
  stored: string,
  verb: 'get' | 'list' | 'watch',
): void {
  if (resourceVersion(stored) !== undefined) versionNumber(requested, verb)
}

/** The Status that refuses a version newer than the stored one; `undefined`: it is not newer. */
export function refusalOfNewer(version: string, stored: string): Status | undefined {
  const [requested, known] = [resourceVersion(version), resourceVersion(stored)]
  if (requested === undefined || known === undefined) return undefined
  return compareVersions(requested, known) > 0
    ? tooLargeResourceVersion(requested, known)
    : undefined
}

/**
 * Throws a StatusError for a get whose version is malformed or newer than `known`, the version up
 * to which the object is known not to have changed.
 */
export function refuseNewerGet({ query }: ResourceRequest, known: string): void {
  const requested = query.get('resourceVersion') ?? ''
  refuseInvalidVersion(requested, known, 'get')
  const newer = refusalOfNewer(requested, known)
  if (newer) throw new StatusError(newer)
}

/**
 * Throws a StatusError where a list at the stored version does not satisfy the request: 504 for a
 * newer version, 410 for exactly an older one and for a further page.
 */
export function refuseOtherListVersion(options: ListOptions, stored: string): void {
  if (options.continue !== '')
    throw new StatusError(expired('The provided continue parameter is too old'))
  const newer = refusalOfNewer(options.resourceVersion, stored)
  if (newer) throw new StatusError(newer)
  const [requested, known] = [resourceVersion(options.resourceVersion), resourceVersion(stored)]
  if (requested === undefined || known === undefined || requested === known) return
  if (isExactList(options)) {
    throw new StatusError(expired('The resourceVersion for the provided list is too old.'))
  }
}
