import type { ResourceVerb } from '../request/request-info.ts'

/** A way into an object: keys, list positions, and `*` for every element of a list. */
export type Path = readonly (string | number)[]

export type Scalar = string | number | boolean

/** What an edit may put in a place: values and lists and objects of them, by their JSON names. */
export type EditValue = Scalar | readonly EditValue[] | { readonly [key: string]: EditValue }

/** One change. Paths name fields by their JSON names, whatever the encoding. */
export type Edit =
  | { readonly op: 'set'; readonly path: Path; readonly value: EditValue }
  | { readonly op: 'remove'; readonly path: Path }

/** Reads one object's bytes by path, JSON or protobuf alike; decodes only what it is asked for. */
export interface Cursor {
  readonly namespace: string
  readonly name: string
  readonly kind: string
  label(key: string): string | undefined
  annotation(key: string): string | undefined
  /** A scalar at a path; `undefined` where there is none. `*` is not allowed here. */
  value(path: Path): Scalar | undefined
  /** How many elements the list at a path has; 0 where there is none. */
  count(path: Path): number
}

/** Judges one object. Must depend on nothing but the object and what `create` was given: the same object gets the same look everywhere. */
export type Filter = (object: Cursor) => 'leave' | 'withhold' | readonly Edit[]

export interface FilterRule {
  /** Names in lower case, as in `componentOf`. */
  readonly components: readonly string[]
  readonly group: string
  readonly resources: readonly string[]
  readonly verbs: readonly ResourceVerb[]
}

/** What the node can tell a filter. Grows with the filters; each names what it needs. */
export interface FilterNeeds {
  /** Where pods reach the hub: `undefined` where no address of it can be reached by pods. */
  readonly hubAddress: { readonly host: string; readonly port: number } | undefined
  readonly warn: (message: string) => void
}

/** A filter and everything there is to say about it. */
export interface FilterDefinition {
  readonly name: string
  readonly rules: readonly FilterRule[]
  /** What becomes of an object at which the filter throws. */
  readonly onError: 'pass' | 'withhold'
  /** `undefined`: the filter has nothing to do on this node, and has said so. */
  create(needs: FilterNeeds): Filter | undefined
}
