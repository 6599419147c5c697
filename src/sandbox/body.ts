import type { IncomingMessage } from 'node:http'
import { parseApiVersion } from '../api/kube/gvk.ts'
import { isObject, parseJson, type Json, type JsonObject } from '../api/kube/json.ts'
import { textAt } from '../api/kube/json-at.ts'
import {
  badRequest,
  requestEntityTooLarge,
  StatusError,
  unsupportedMediaType,
  type Status,
} from '../api/kube/status.ts'
import { PathError } from '../api/codec/element.ts'
import { MalformedBody } from '../api/codec/malformed-body.ts'
import { fromProtobuf } from './protobuf.ts'

/** The largest body that kube-apiserver accepts. */
const limit = 3 * 1024 * 1024

/** The whole body. Throws a StatusError 413 for one that is too large. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.byteLength
    if (length > limit) {
      throw new StatusError(requestEntityTooLarge(`Request entity too large: limit is ${limit}`))
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const objectTypes = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']

/** The media type of a header without its parameters. */
export const bareType = (header: string | undefined): string =>
  (header ?? '').split(';')[0]?.trim().toLowerCase() ?? ''

interface Expected {
  readonly kind: string
  readonly apiVersion: string
}

/**
 * The object in a request body. Throws a StatusError: 415 for other media types, 400 for anything
 * but an object of the expected kind.
 */
export function decodeObject(
  body: Buffer,
  contentType: string | undefined,
  expected: Expected,
): JsonObject {
  const object = decode(body, bareType(contentType) || 'application/json', expected.kind)
  const kind = textAt(object, 'kind') || expected.kind
  const apiVersion = textAt(object, 'apiVersion') || expected.apiVersion
  if (kind !== expected.kind || apiVersion !== expected.apiVersion) {
    const [found, wanted] = [parseApiVersion(apiVersion), parseApiVersion(expected.apiVersion)]
    throw new StatusError(
      badRequest(
        `${kind} in version "${found.version}" cannot be handled as a ${expected.kind}: converting (${found.version}.${kind}) to (${wanted.group.split('.')[0] || 'core'}.${expected.kind}): unknown conversion`,
      ),
    )
  }
  return object
}

/** The object in the body of a request. Throws a StatusError. */
export const readObject = async (
  request: IncomingMessage,
  expected: Expected,
): Promise<JsonObject> =>
  decodeObject(await readBody(request), request.headers['content-type'], expected)

function decode(body: Buffer, type: string, kind: string): JsonObject {
  if (type === 'application/vnd.kubernetes.protobuf') return decodeProtobuf(body)
  if (type !== 'application/json') throw new StatusError(unknownFormat(objectTypes))
  const value = parseJson(body.toString())
  if (isObject(value)) return value
  throw new StatusError(
    badRequest(`the object provided is unrecognized (must be of type ${kind}): it is no object`),
  )
}

/** 415 for a body whose media type is none of `types`. */
export const unknownFormat = (types: readonly string[]): Status =>
  unsupportedMediaType(
    `the body of the request was in an unknown format - accepted media types include: ${types.join(', ')}`,
  )

function decodeProtobuf(body: Buffer): JsonObject {
  try {
    return fromProtobuf(body).object
  } catch (cause) {
    // Of kinds the sandbox has in JSON only, it takes nothing else.
    if (cause instanceof PathError)
      throw new StatusError(unknownFormat(['application/json', 'application/yaml']), { cause })
    if (cause instanceof MalformedBody) throw new StatusError(badRequest(cause.message), { cause })
    throw cause
  }
}

/** The document of a patch. Throws a StatusError 400. */
export function decodePatch(body: Buffer): Json {
  const patch = parseJson(body.toString())
  if (patch === undefined) throw new StatusError(badRequest('error decoding patch: it is not JSON'))
  return patch
}
