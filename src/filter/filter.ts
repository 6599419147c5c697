import type { Cursor } from '../codec/cursor.ts'
import type { Edit } from '../codec/edit.ts'
import type { ResourceVerb } from '../request/request-info.ts'
import type { InputName, Inputs } from './inputs.ts'

export type { Cursor } from '../codec/cursor.ts'
export type { Edit } from '../codec/edit.ts'

/** Judges one object. Must depend on nothing but the object and what `create` was given: the same object gets the same look everywhere. */
export type Filter = (object: Cursor) => 'leave' | 'withhold' | readonly Edit[]

export interface FilterRule {
  /** Names in lower case, as in `componentOf`. The cluster's ConfigMap adds to them. */
  readonly components: readonly string[]
  readonly group: string
  readonly resources: readonly string[]
  readonly verbs: readonly ResourceVerb[]
}

/** A filter and everything there is to say about it. */
export interface FilterDefinition<Needs extends InputName = InputName> {
  readonly name: string
  readonly rules: readonly FilterRule[]
  /** What becomes of an object at which the filter throws. */
  readonly onError: 'pass' | 'withhold'
  /** What `create` is given. When one of these changes, the filter is made anew, and clients are told of objects that look different by it. */
  readonly needs: readonly Needs[]
  /** Those of `needs` without which the filter would guess: while one has never been known, its components get 503, as for what was never listed. */
  readonly awaits?: readonly Needs[]
  /** `undefined`: the filter has nothing to do here; `warn` says why, where somebody could be surprised. */
  create(inputs: Pick<Inputs, Needs>, warn: (message: string) => void): Filter | undefined
}
