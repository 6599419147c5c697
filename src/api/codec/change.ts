import type { Element, Path, Scalar } from './element.ts'

/** A value that an edit may set: scalars, and lists and objects of them, by their JSON names. */
export type EditValue = Scalar | readonly EditValue[] | { readonly [key: string]: EditValue }

/**
 * One change. Paths use JSON names in both encodings; `*` is every element of a list, possibly
 * none. `set` creates missing parents, and appends where the position equals the length of the
 * list. `remove` of a missing field changes nothing. `each` calls `change` for the elements of the
 * list at its path, in one pass; elements that it leaves keep their bytes.
 */
export type Edit =
  | { readonly op: 'set'; readonly path: Path; readonly value: EditValue }
  | { readonly op: 'remove'; readonly path: Path }
  | { readonly op: 'each'; readonly path: Path; readonly change: ElementChange }

/** The decision about one element of a list. Paths of the edits begin at the element. */
export type ElementChange = (element: Element) => 'leave' | 'remove' | readonly Edit[]
