import type { Element, Path, Scalar } from './element.ts'

/** What an edit may put in a place: values and lists and objects of them, by their JSON names. */
export type EditValue = Scalar | readonly EditValue[] | { readonly [key: string]: EditValue }

/**
 * One change. Paths name fields by their JSON names, whatever the encoding; `*` means every
 * element, be they none. `set` makes the parents that are missing, and appends where the position
 * is the length of the list. `remove` of what is not there changes nothing. `each` judges the
 * elements of the list at its path one by one, in one pass however many they are; what is left
 * keeps its bytes.
 */
export type Edit =
  | { readonly op: 'set'; readonly path: Path; readonly value: EditValue }
  | { readonly op: 'remove'; readonly path: Path }
  | { readonly op: 'each'; readonly path: Path; readonly change: ElementChange }

/** What becomes of an element of a list; paths of the edits begin at the element. */
export type ElementChange = (element: Element) => 'leave' | 'remove' | readonly Edit[]
