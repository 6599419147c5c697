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
