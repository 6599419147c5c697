import type { Json } from '../kube/json.ts'

/** A path into an object: keys, list positions, and `*` for every element of a list. */
export type Path = readonly (string | number)[]

export type Scalar = string | number | boolean

/**
 * An object, or an element of one of its lists; the path `[]` of an element is the element itself.
 */
export interface Element {
  /**
   * The scalar at a path; `undefined` if there is none. `*` is not allowed. Numbers beyond 2^53 are
   * inexact.
   */
  value(path: Path): Scalar | undefined
  /**
   * Whether the path has a value. An object without members is a value; null and an empty list are
   * not.
   */
  has(path: Path): boolean
  /** The length of the list at a path; 0 if there is none. */
  count(path: Path): number
}

/**
 * Reads one object's bytes by path, in JSON and protobuf alike, and decodes only the requested
 * values. Paths use JSON names. A field exists if JSON would show it: a value that Go omits from
 * JSON because it is empty is `undefined`.
 *
 * Of a PartialObjectMetadata the cursor reads the metadata only. In protobuf, a path that is no
 * field of the kind throws a `PathError`.
 */
export interface Cursor extends Element {
  readonly namespace: string
  readonly name: string
  /** Empty where the object has none. */
  readonly uid: string
  readonly resourceVersion: string
  readonly kind: string
  /** `v1`, or `group/version`. */
  readonly apiVersion: string
  /**
   * Whether a text may occur in a key or value of the object. `false` is certain and needs no
   * decoding: a cheap first check for filters that change few objects. Field names do not count, as
   * protobuf has none.
   */
  mentions(text: string): boolean
  label(key: string): string | undefined
  annotation(key: string): string | undefined
  /**
   * The decoded value at a path; `undefined` for a missing value and null. In protobuf without
   * fields that the schema lacks. Throws `MalformedBody` for more than a megabyte.
   */
  json(path: Path): Json | undefined
  /** Differs where the value at a path does, without decoding it; '' if there is none. */
  digest(path: Path): string
}

/**
 * A path or value that an object of its kind cannot have, or of a kind without a known schema: a
 * mistake in a filter.
 */
export class PathError extends Error {
  readonly code = 'PATH_ERROR'
}
