import type { Json } from '../kube/json.ts'

/** A way into an object: keys, list positions, and `*` for every element of a list. */
export type Path = readonly (string | number)[]

export type Scalar = string | number | boolean

/**
 * What can be read by path: an object, or an element of one of its lists, of which the path `[]` is
 * the element itself.
 */
export interface Element {
  /**
   * A scalar at a path; `undefined` where there is none. `*` is not allowed here. Numbers beyond
   * 2^53 are inexact.
   */
  value(path: Path): Scalar | undefined
  /**
   * Whether anything is there, be it an object without members; null and an empty list are nothing.
   */
  has(path: Path): boolean
  /** How many elements the list at a path has; 0 where there is none. */
  count(path: Path): number
}

/**
 * Reads one object's bytes by path, JSON or protobuf alike; decodes only what it is asked for.
 * Paths name fields by their JSON names, and a field is there when JSON would have it: what Go
 * leaves out of JSON for being empty is `undefined`.
 *
 * Of a PartialObjectMetadata and of a row of a Table it reads the object they show, which mostly
 * has metadata only. In protobuf, a path that is no field of the kind throws a `PathError`.
 */
export interface Cursor extends Element {
  readonly namespace: string
  readonly name: string
  readonly kind: string
  /** `v1`, or `group/version`. */
  readonly apiVersion: string
  /**
   * Whether some text may stand anywhere in the object, in a key or in a value: false where it
   * surely does not, without reading the object. For a first look at what mostly leaves as it is.
   * Names of fields do not count, since protobuf has none.
   */
  mentions(text: string): boolean
  label(key: string): string | undefined
  annotation(key: string): string | undefined
  /**
   * Everything at a path, decoded, which is a field of the object or in one; `undefined` where
   * nothing is, or null. In protobuf what the schema does not know is left out. Throws a
   * `LargeValue` for more than a megabyte.
   */
  json(path: Path): Json | undefined
}
