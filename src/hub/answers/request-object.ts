import { readObject } from '../../api/codec/object.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import { wholeRequestBody } from '../../http/exchange/request-body.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import { encodingOf, type Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { badRequest, StatusError, unsupportedMediaType } from '../../api/kube/status.ts'

/** The largest body of a write that is answered offline: the API server's own limit. */
export const maxBodyBytes = 3 * 1024 * 1024

/** The object in the body of a request. */
export interface RequestObject {
  readonly encoding: Encoding
  readonly body: Buffer
  readonly gvk: GVK
  readonly object: ApiObject
}

/**
 * Reads the object in the body of a request. Throws the StatusError of an API server for others.
 */
export async function requestObject(exchange: Exchange): Promise<RequestObject> {
  const encoding = encodingOf(exchange.headers.get('content-type') ?? 'application/json')
  if (encoding === undefined) {
    throw new StatusError(
      unsupportedMediaType(
        'the body of the request was in an unknown format - accepted media types include: application/json, application/vnd.kubernetes.protobuf',
      ),
    )
  }
  const body = await requestBody(exchange)
  try {
    return { encoding, body, ...readObject(encoding, 'object', body) }
  } catch (cause) {
    throw new StatusError(badRequest('the object provided is unrecognized'), { cause })
  }
}

/** The whole body of a request. Throws 413 where it is too large. */
export async function requestBody({ body, content }: Exchange): Promise<Buffer> {
  if (content) return content
  return body ? wholeRequestBody(body, maxBodyBytes) : Buffer.alloc(0)
}
