/**
 * A path or value that an object of its kind cannot have, or of a kind without a known schema: a
 * mistake in a filter.
 */
export class PathError extends Error {
  readonly code = 'PATH_ERROR'
}
