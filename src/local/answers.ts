import type { BodyReply, Exchange, ListReply, ObjectReply } from '../exchange/exchange.ts'
import { compareVersions, resourceVersion } from '../kube/resource-version.ts'
import {
  expired,
  notFound,
  serviceUnavailable,
  StatusError,
  tooLargeResourceVersion,
} from '../kube/status.ts'
import type { ResourceRequest } from '../request/request-info.ts'
import { documentKey, objectKey } from '../store/keys.ts'
import { answerHeaders, listReply, objectReply } from '../store/answers.ts'
import type { ObjectStore } from '../store/store.ts'
import { sourceOf, storedList } from './source.ts'

/**
 * The 503 for what the cache does not hold. It has no Retry-After: with one a client would repeat the request every second while the hub
 * is offline; without, it backs off.
 */
export const neverCached = (): StatusError =>
  new StatusError(
    serviceUnavailable('the cloud cannot be reached, and the answer is not in the cache'),
  )

/** Answers a get with the newest state that the caller was shown; 404 where the object is known not to exist. */
export function localObject(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
): ObjectReply {
  let absent = false
  for (const form of exchange.forms) {
    const found = store.get(objectKey(exchange, info, form))
    if (found === 'absent') absent = true
    else if (found) return objectReply(form, found)
  }
  if (absent) throw new StatusError(notFound({ ...info.gvr, name: info.name ?? '' }))
  throw neverCached()
}

/** Answers a list at the newest version that the cloud gave for it; 504 where a newer one is asked for, 410 for exactly another or a further page. */
export function localList(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
): ListReply {
  const source = sourceOf(exchange, info, store)
  if (!source) throw neverCached()
  // A version that is not there is refused before the store is read.
  refuseOtherVersions(info, source.resourceVersion)
  const stored = storedList(source, store)
  if (!stored) throw neverCached()
  // It is the version of objects that are still being written, too.
  refuseOtherVersions(info, stored.resourceVersion)
  return listReply(source.form, stored)
}

function refuseOtherVersions({ query }: ResourceRequest, stored: string): void {
  if (query.get('continue'))
    throw new StatusError(expired('The provided continue parameter is too old'))
  const asked = resourceVersion(query.get('resourceVersion') ?? undefined)
  const known = resourceVersion(stored)
  if (asked === undefined || known === undefined) return
  const order = compareVersions(asked, known)
  if (order > 0) throw new StatusError(tooLargeResourceVersion(asked, known))
  if (order < 0 && query.get('resourceVersionMatch') === 'Exact') {
    throw new StatusError(expired(`The resourceVersion for the provided list is too old.`))
  }
}

/** Discovery and the like, as they were last given to the same caller in the same form. */
export function localDocument(exchange: Exchange, store: ObjectStore): BodyReply {
  const found = store.document(documentKey(exchange))
  if (!found) throw neverCached()
  return {
    kind: 'body',
    from: 'cache',
    status: 200,
    headers: answerHeaders(found.contentType),
    body: found.body,
  }
}
