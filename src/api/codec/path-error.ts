/**
 * A path or value that cannot be in an object of its kind, or in one whose fields are not known: a
 * mistake of who wrote the path.
 */
export class PathError extends Error {
  readonly code = 'PATH_ERROR'
}
