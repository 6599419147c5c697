import type { JsonObject } from '../api/kube/json.ts'
import { namespacedName } from '../api/kube/object.ts'
import { methodNotAllowed, notFound, resourceNotFound, StatusError } from '../api/kube/status.ts'
import { listOptionsOf, versionNumber } from '../api/request/list-options.ts'
import type { ResourceRequest } from '../api/request/request-info.ts'
import { sendBody, sendObject, sendStreamHead } from './answer.ts'
import { decodeObject, readBody } from './body.ts'
import type { Api, Call } from './call.ts'
import { hasStatus } from './kinds.ts'
import { list, waitUntilFresh, type ListResult } from './list.ts'
import { contentTypeOf, type ResponseFormat } from './negotiation.ts'
import { checkPatchType, patched } from './patching.ts'
import { renderList, statusGvk } from './render.ts'
import { bodyOf, nameOf, formatOf, sendResource, type ResourceCall } from './resource-call.ts'
import { answerReview, isReview } from './reviews.ts'
import { selectionOf } from './selection-predicate.ts'
import { answerSubresource } from './subresources.ts'
import { awaitStart, watch } from './watch.ts'
import type { DeleteOptions } from './write-rules.ts'

/**
 * False for a group and version that is not served: such a path is no resource. Throws
 * StatusErrors.
 */
export async function answerResource(api: Api, call: Call): Promise<boolean> {
  const { info, seen } = call
  if (!info.isResource) return false
  const kind = api.registry.catalog.find(info.gvr)
  if (!kind) {
    if (!api.registry.catalog.hasGroupVersion(info.gvr.group, info.gvr.version)) return false
    throw new StatusError(resourceNotFound())
  }
  const found: ResourceCall = { ...call, info, kind }
  if (seen.method === 'HEAD') throw new StatusError(methodNotAllowed())
  if (info.subresource !== undefined) await subresource(api, found)
  else if (isReview(kind)) await answerReview(api, found)
  else await verbs[info.verb](api, found)
  return true
}

async function subresource(api: Api, call: ResourceCall): Promise<void> {
  const { kind, info } = call
  const served = kind.subresources.find(({ name }) => name === info.subresource)
  if (!served) throw new StatusError(resourceNotFound())
  if (!served.verbs.includes(info.verb)) throw new StatusError(methodNotAllowed())
  if (await answerSubresource(api, call)) return
  await verbs[info.verb](api, call)
}

type Verb = (api: Api, call: ResourceCall) => Promise<void> | void

const verbs: Record<ResourceRequest['verb'], Verb> = {
  get: getObject,
  list: listObjects,
  watch: watchObjects,
  create,
  update,
  patch,
  delete: deleteObject,
  deletecollection: deleteObjects,
}

async function getObject(api: Api, call: ResourceCall): Promise<void> {
  const { view, kind, info } = call
  const name = nameOf(call)
  const format = formatOf(call)
  const requested = info.query.get('resourceVersion') ?? ''
  await waitUntilFresh(view, versionNumber(requested, 'get'), api.freshnessMs)
  const object = view
    .at(kind, requested === '' ? view.newest : view.version)
    .get(namespacedName({ namespace: info.namespace, name }))
  if (!object) throw new StatusError(notFound({ ...kind.gvr, name }))
  sendResource(call, object, 200, format)
}

async function listObjects(api: Api, call: ResourceCall): Promise<void> {
  if (!call.kind.verbs.includes('list')) throw new StatusError(methodNotAllowed())
  const format = formatOf(call)
  sendList(call, await listed(api, call), format)
}

async function listed(api: Api, { view, kind, info }: ResourceCall): Promise<ListResult> {
  const selection = selectionOf(kind, info.namespace, info.query)
  const options = listOptionsOf(info.query, false, api.watchSettings.watchListServed)
  return list(view, kind, selection, options, api.freshnessMs)
}

function sendList(call: ResourceCall, result: ListResult, format: ResponseFormat): void {
  sendBody(call, {
    contentType: contentTypeOf(format),
    bytes: renderList(call.kind, result, format),
  })
}

async function watchObjects(api: Api, call: ResourceCall): Promise<void> {
  const { view, kind, info, writer, seen } = call
  if (!kind.verbs.includes('watch')) throw new StatusError(methodNotAllowed())
  const format = formatOf(call)
  const selection = selectionOf(kind, info.namespace, info.query)
  const options = listOptionsOf(info.query, true, api.watchSettings.watchListServed)
  await awaitStart(view, options, api.freshnessMs)
  if (!writer.isOpen) return
  sendStreamHead(call, contentTypeOf(format, true))
  const watched = { kind, selection, options, format }
  const open = watch(view, watched, writer, api.watchSettings)
  if (!open) return
  const counted = api.watches.add(seen, open)
  writer.onClose(() => counted[Symbol.dispose]())
}

async function create(api: Api, call: ResourceCall): Promise<void> {
  const { kind, info } = call
  if (info.name !== undefined) throw new StatusError(methodNotAllowed())
  if (!kind.verbs.includes('create') || (kind.namespaced && info.namespace === undefined)) {
    throw new StatusError(methodNotAllowed())
  }
  const format = formatOf(call)
  const given = await bodyOf(call)
  const object = api.registry.create(kind, info.namespace, given)
  sendResource(call, object, 201, format)
}

async function update(api: Api, call: ResourceCall): Promise<void> {
  const { kind, info } = call
  const name = nameOf(call)
  const format = formatOf(call)
  const given = await bodyOf(call)
  const of = ownSubresource(call)
  const { object, created } = api.registry.update(kind, info.namespace, name, given, of)
  sendResource(call, object, created ? 201 : 200, format)
}

const ownSubresource = ({ kind, info }: ResourceCall): string | undefined =>
  hasStatus(kind) && ['status', 'approval'].includes(info.subresource ?? '') ? 'status' : undefined

async function patch(api: Api, call: ResourceCall): Promise<void> {
  const { kind, info, request } = call
  const name = nameOf(call)
  const format = formatOf(call)
  const type = request.headers['content-type']
  checkPatchType(kind, type)
  const body = await readBody(request)
  const current = api.registry.get(kind, info.namespace, name)
  const wanted = patched(kind, current, body, type)
  const of = ownSubresource(call)
  const { object } = api.registry.update(kind, info.namespace, name, wanted, of)
  sendResource(call, object, 200, format)
}

/** Kinds of which a delete shows the object, not a Status. */
const shownWhenDeleted = new Set([
  'pods',
  'services',
  'serviceaccounts',
  'persistentvolumes',
  'persistentvolumeclaims',
])

async function deleteObject(api: Api, call: ResourceCall): Promise<void> {
  const { kind, info } = call
  const name = nameOf(call)
  const format = formatOf(call)
  const options = await deleteOptionsOf(call)
  const { object, gone } = api.registry.delete(kind, info.namespace, name, options)
  if (!gone || shownWhenDeleted.has(kind.gvr.resource)) {
    sendResource(call, object, 200, format)
    return
  }
  const { group } = kind.gvr
  const { uid } = object.metadata
  const status: JsonObject = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: { name, ...(group !== '' && { group }), kind: kind.gvr.resource, uid },
  }
  sendObject(call, statusGvk, status, format)
}

async function deleteObjects(api: Api, call: ResourceCall): Promise<void> {
  const { kind } = call
  if (!kind.verbs.includes('deletecollection')) throw new StatusError(methodNotAllowed())
  const format = formatOf(call)
  const options = await deleteOptionsOf(call)
  const result = await listed(api, call)
  for (const { metadata } of result.objects) {
    api.registry.delete(kind, metadata.namespace, metadata.name, options)
  }
  sendList(call, result, format)
}

/** From the body, or where there is none from the query. */
async function deleteOptionsOf({ info, request }: ResourceCall): Promise<DeleteOptions> {
  const body = await readBody(request)
  const given =
    body.byteLength === 0
      ? {}
      : decodeObject(body, request.headers['content-type'], {
          kind: 'DeleteOptions',
          apiVersion: deleteOptionsVersion(body),
        })
  const grace = given['gracePeriodSeconds'] ?? info.query.get('gracePeriodSeconds')
  return grace === null || grace === undefined ? {} : { gracePeriodSeconds: Number(grace) }
}

/** Clients write these options in the group and version of the deleted object: any is right. */
function deleteOptionsVersion(body: Buffer): string {
  const inJson = /"apiVersion"\s*:\s*"([^"]*)"/.exec(body.subarray(0, 4096).toString('latin1'))
  return inJson?.[1] ?? 'v1'
}
