import type { JsonObject } from '../api/kube/json.ts'
import { methodNotAllowed, StatusError } from '../api/kube/status.ts'
import type { ResourceRequest } from '../api/request/request-info.ts'
import { sendBody } from './answer.ts'
import { readObject } from './body.ts'
import type { Call } from './call.ts'
import { apiVersionOfKind, gvkOf, type Kind } from './kinds.ts'
import { contentTypeOf, negotiate, type ResponseFormat } from './negotiation.ts'
import type { KubeObject } from './object.ts'
import { renderObject, hasProtobuf } from './render.ts'

/** A request for a resource that is served. */
export interface ResourceCall extends Call {
  readonly info: ResourceRequest
  readonly kind: Kind
}

/** Negotiates the format of the answer. Throws a StatusError 406. */
export const formatOf = ({ kind, seen }: ResourceCall): ResponseFormat =>
  negotiate(seen, { protobuf: !kind.custom && hasProtobuf(gvkOf(kind)), conversions: true })

export function sendResource(
  call: ResourceCall,
  object: KubeObject,
  status = 200,
  format = formatOf(call),
): void {
  sendBody(call, {
    status,
    contentType: contentTypeOf(format),
    bytes: renderObject(call.kind, object, format),
  })
}

/** Throws a StatusError 405 where a request is about no object in particular. */
export function nameOf({ info }: ResourceCall): string {
  if (info.name === undefined) throw new StatusError(methodNotAllowed())
  return info.name
}

/** The object in the body. Throws a StatusError. */
export const bodyOf = ({ kind, request }: ResourceCall): Promise<JsonObject> =>
  readObject(request, { kind: kind.kind, apiVersion: apiVersionOfKind(kind) })
