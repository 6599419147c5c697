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

/** The value of a JSON text. Throws `MalformedBody`. */
export function parsedJson(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch (cause) {
    throw new MalformedBody('a value that is not JSON', { cause })
  }
}
