import type { Json } from '../kube/json.ts'

/** The bytes do not match their media type, end too early, or exceed a limit. */
export class MalformedBody extends Error {
  readonly code = 'MALFORMED_BODY'
}

/** The largest object or frame: client-go reads no larger one (apimachinery pkg/util/framer). */
export const maxObjectBytes = 16 * 1024 * 1024

/**
 * The nesting limit of the API server's decoder (sigs.k8s.io/json): the hub reads what it stores.
 */
export const maxNesting = 10_000

/** The most that the codec decodes at once: EndpointSlices with 1,000 endpoints have half of it. */
export const maxDecodedBytes = 1024 * 1024

/** Throws `MalformedBody` for a value of more bytes. */
export function checkDecodable(bytes: number): void {
  if (bytes > maxDecodedBytes)
    throw new MalformedBody(`a value of more than ${maxDecodedBytes} bytes`)
}

/** The value of a JSON text. Throws `MalformedBody`. */
export function parsedJson(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch (cause) {
    throw new MalformedBody('a value that is not JSON', { cause })
  }
}
