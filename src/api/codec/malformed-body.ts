/**
 * Bytes that are not what their media type says, or that end too early, or that are larger than
 * anything is allowed to be.
 */
export class MalformedBody extends Error {
  readonly code = 'MALFORMED_BODY'
}

/** The largest object or frame: client-go reads no larger one (apimachinery pkg/util/framer). */
export const maxObjectBytes = 16 * 1024 * 1024

/**
 * How deep JSON may nest: as deep as the decoder of the API server goes (sigs.k8s.io/json), so that
 * what it stores can be read.
 */
export const maxNesting = 10_000
