import type { BodyReply, Exchange, ListReply, ObjectReply } from '../../http/exchange/exchange.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { notFound, serviceUnavailable, StatusError } from '../../api/kube/status.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { answerHeaders, objectReply } from './replies.ts'
import { refuseNewerGet } from './requested-version.ts'
import { documentKeys, objectKey } from './keys.ts'
import { offlineList } from './offline-list.ts'
import { withAge, withStaleness } from './staleness.ts'
import type { StoredDocument, ObjectStore, StoredObject } from '../store/store.ts'
import { newestCoveringVersion } from './covering-version.ts'
import type { OverlayKey, StatusOverlays } from './status-overlays.ts'
import { coveringCollection } from './covering-collection.ts'
import { storedTable } from './tables.ts'

/**
 * The 503 for what the cache does not hold. It has no Retry-After: with one a client would repeat
 * the request every second while the hub is offline; without, it backs off.
 */
export const neverCached = (): StatusError =>
  new StatusError(
    serviceUnavailable('the cloud cannot be reached, and the answer is not in the cache'),
  )

/** The 503 for what is not read but done: writes, exec, logs and all else asked of a node. */
export const needsTheCloud = (): StatusError =>
  new StatusError(
    serviceUnavailable('the cloud cannot be reached, and this cannot be done without it'),
  )

/**
 * What a kubelet would act upon fatally if it were told that it is not there: it would make
 * another, which only the cloud can, and end itself when it cannot (kubernetes
 * pkg/volume/csi/csi_plugin.go). Whoever listed them may know better, and is told no more than
 * others.
 */
const neverAbsent = new Set(['csinodes.storage.k8s.io', 'leases.coordination.k8s.io'])

/**
 * The newest state of an object that the caller was shown, in the first of its forms; throws 404
 * where it is known not to exist, else 503.
 */
export function storedObject(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
): { representation: Representation; stored: StoredObject } {
  let absent = false
  for (const representation of exchange.representations) {
    const got = store.get(objectKey(exchange, info, representation))
    const isTable = representation.projection === 'table'
    const found = isTable ? storedTable(exchange, info, representation, store, got) : got
    if (found === 'absent') absent = true
    else if (found) return { representation, stored: found }
  }
  if (!absent || neverAbsent.has(qualifiedResource(info.gvr))) throw neverCached()
  // As of a version that has not come nobody knows whether it is there.
  const known = newestCoveringVersion(exchange, info, store)
  if (known) refuseNewerGet(info, known)
  throw new StatusError(notFound({ ...info.gvr, name: info.name ?? '' }))
}

/** Answers a get, with what the caller has written of the object's status meanwhile. */
export function localObject(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
  overlays: StatusOverlays,
): ObjectReply {
  const { representation, stored } = storedObject(exchange, info, store)
  refuseNewerGet(info, stored.confirmedVersion)
  const object = overlays.show(overlayKey(exchange, info), representation, stored)
  const reply = objectReply(representation, { ...stored, object })
  return { ...reply, headers: withStaleness(reply.headers, exchange, stored.confirmedAt) }
}

/** The object that a request names, for its sender. */
export const overlayKey = ({ identity }: Exchange, info: ResourceRequest): OverlayKey => ({
  identity,
  gvr: info.gvr,
  namespace: info.namespace ?? '',
  name: info.name ?? '',
})

/** Answers a list, with what the caller has written of its objects' status meanwhile. */
export function localList(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
  overlays: StatusOverlays,
): ListReply {
  const collection = coveringCollection(exchange, info, store)
  const of = { identity: exchange.identity, gvr: info.gvr }
  const reply = offlineList(exchange, info, collection, store, (stored, { kind, representation }) =>
    overlays.showAll(of, representation, kind, stored),
  )
  if (!reply) throw neverCached()
  return reply
}

/**
 * Discovery and the like, as they were last given to the same caller, in the representation it
 * wants most of those that it was given.
 */
export function localDocument(exchange: Exchange, store: ObjectStore): BodyReply {
  let found: StoredDocument | undefined
  for (const key of documentKeys(exchange)) if ((found = store.document(key))) break
  if (!found) throw neverCached()
  return {
    kind: 'body',
    from: 'cache',
    status: 200,
    // No warning: kubectl reads discovery before whatever it is asked for, which says it then.
    headers: withAge(answerHeaders(found.contentType), found.confirmedAt),
    body: found.body,
  }
}
