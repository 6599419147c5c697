import type { Cursor } from '../codec/cursor.ts'
import type { Edit } from '../codec/edit.ts'
import type { ResourceVerb } from '../request/request-info.ts'

export type { Cursor } from '../codec/cursor.ts'
export type { Edit } from '../codec/edit.ts'

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
