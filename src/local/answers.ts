import { HeaderList } from '../exchange/headers.ts'
import type { BodyReply, Exchange, ListReply, ObjectReply } from '../exchange/exchange.ts'
import { turn } from '../base/clock.ts'
import { listHead, listTail } from '../codec/render.ts'
import type { ApiObject } from '../kube/object.ts'
import { mediaType } from '../kube/media-type.ts'
import type { GVK } from '../kube/gvk.ts'
import { compareVersions, resourceVersion } from '../kube/resource-version.ts'
import {
  expired,
  notFound,
  serviceUnavailable,
  StatusError,
  tooLargeResourceVersion,
} from '../kube/status.ts'
import type { Form } from '../request/form.ts'
import type { ResourceRequest } from '../request/request-info.ts'
import { collectionKey, documentKey, objectKey } from '../store/keys.ts'
import type { ObjectStore, StoredList } from '../store/store.ts'

/** What the API server sends with every answer, and what is true of ours. */
export const answerHeaders = (contentType: string): HeaderList =>
  new HeaderList(['Cache-Control', 'no-cache, private', 'Content-Type', contentType])

/**
 * Nothing is known that could answer. Without Retry-After: a client that is told to come back in a second repeats for ever what
 * cannot be answered while the cloud is gone; without, it backs off.
 */
export const neverCached = (): StatusError =>
  new StatusError(
    serviceUnavailable('the cloud cannot be reached, and the answer is not in the cache'),
  )

/** A get: the newest that the caller was shown of it, 404 where it is known not to be. */
export function localObject(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
): ObjectReply {
  let absent = false
  for (const form of exchange.forms) {
    const found = store.get(objectKey(exchange, info, form))
    if (found === 'absent') absent = true
    else if (found) return objectReply(form, found.gvk, found.object)
  }
  if (absent) throw new StatusError(notFound({ ...info.gvr, name: info.name ?? '' }))
  throw neverCached()
}

const objectReply = (form: Form, gvk: GVK, object: ApiObject): ObjectReply => ({
  kind: 'object',
  from: 'cache',
  status: 200,
  headers: answerHeaders(mediaType(form.encoding)),
  form,
  gvk,
  object,
})

/** The first of the client's forms in which the collection was listed. */
export function storedCollection(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
): { form: Form; stored: StoredList } | undefined {
  for (const form of exchange.forms) {
    const stored = store.list(collectionKey(exchange, info, form))
    if (stored) return { form, stored }
  }
  return undefined
}

/** A list, at the newest version the cloud gave for it: 504 for a newer one, 410 for exactly another one or a further page. */
export function localList(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
): ListReply {
  // Who asks for what is not there is told so before anything of what is there is read.
  for (const form of exchange.forms) {
    const version = store.version(collectionKey(exchange, info, form))
    if (version === undefined) continue
    refuseOtherVersions(info, version)
    break
  }
  const found = storedCollection(exchange, info, store)
  if (!found) throw neverCached()
  const { form, stored } = found
  // The version is that of what is still being written, too.
  refuseOtherVersions(info, stored.resourceVersion)
  const meta = { resourceVersion: stored.resourceVersion, continue: '' }
  const { gvk, extra } = stored
  // Protobuf says how long a list is before its first object, so it has to be whole here; JSON is read as it is sent.
  const batches = form.encoding === 'protobuf' ? [...stored.batches] : stored.batches
  const objects = Array.isArray(batches) ? batches.flat() : []
  return {
    kind: 'list',
    from: 'cache',
    status: 200,
    headers: answerHeaders(mediaType(form.encoding)),
    form,
    list: {
      gvk,
      head: [listHead(form.encoding, form.shape, gvk, meta, extra, objects)],
      batches: inTurn(batches),
      end: () => Promise.resolve({ meta, extra, tail: [listTail(form.encoding)] }),
    },
  }
}

/** Lets others have their turn between two runs of a long list. */
async function* inTurn(
  batches: Iterable<readonly ApiObject[]>,
): AsyncGenerator<{ objects: readonly ApiObject[] }> {
  for (const objects of batches) {
    yield { objects }
    await turn()
  }
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
