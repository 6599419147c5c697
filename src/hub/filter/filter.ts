import type { Cursor } from '../../api/codec/cursor.ts'
import type { Edit } from '../../api/codec/edit.ts'
import type { ResourceVerb } from '../../api/request/request-info.ts'
import type { InputName, Inputs } from './inputs.ts'

export type { Cursor, Element } from '../../api/codec/cursor.ts'
export type { Edit } from '../../api/codec/edit.ts'

/**
 * All verbs whose answers show objects: reads, and the replies to writes, which show what a read
 * would.
 */
export const showing: readonly ResourceVerb[] = [
  'get',
  'list',
  'watch',
  'create',
  'update',
  'patch',
  'delete',
  'deletecollection',
]

/**
 * Judges one object. Must depend on nothing but the object and what `create` was given: the same
 * object gets the same look everywhere.
 */
export type Filter = (object: Cursor) => 'leave' | 'withhold' | readonly Edit[]

export interface FilterRule {
  /** Names in lower case, as in `componentOf`. The cluster's ConfigMap adds to them. */
  readonly components: readonly string[]
  readonly group: string
  readonly resources: readonly string[]
  readonly verbs: readonly ResourceVerb[]
  /** The one object that it is about: of requests for others nothing is looked at. */
  readonly only?: { readonly namespace: string; readonly name: string }
}

/** An object that is about to be shown. The cursor is of no use after the call it is given to. */
export interface ShownObject {
  readonly cursor: Cursor
  readonly uid: string
}

/** A filter that has to settle something before anybody is shown what it makes of an object. */
export interface SettlingFilter {
  readonly filter: Filter
  /**
   * Called with all objects of an answer, or of a part of it, before the filter judges them, again
   * and again for the same ones; what it returns is waited for. Where that rejects, the answer is
   * refused (503), or breaks off.
   */
  before(objects: readonly ShownObject[]): Promise<void> | undefined
}

/** A filter and everything there is to say about it. */
export interface FilterDefinition<Needs extends InputName = InputName> {
  readonly name: string
  /**
   * Tells versions of its code apart, where one gives the same object another look out of the same
   * inputs: clients that were shown the other one's are made to list again. '' where absent.
   */
  readonly revision?: string
  readonly rules: readonly FilterRule[]
  /** What becomes of an object at which the filter throws. */
  readonly onError: 'pass' | 'withhold'
  /**
   * What `create` is given. When one of these changes, the filter is made anew, and clients are
   * told of objects that look different by it.
   */
  readonly needs: readonly Needs[]
  /**
   * Those of `needs` without which the filter would guess: while one has never been known, its
   * components get 503, as for what was never listed. Where nobody tells, since the hub may not
   * read it, `create` is given `undefined`, and the filter does without.
   */
  readonly awaits?: readonly Needs[]
  /**
   * It stands even where it is switched off, because it has to keep to what it has shown; that it
   * is switched off is then among its inputs.
   */
  readonly lasting?: true
  /**
   * `undefined`: the filter has nothing to do here; `warn` says why, where somebody could be
   * surprised.
   */
  create(
    inputs: Pick<Inputs, Needs>,
    warn: (message: string) => void,
  ): Filter | SettlingFilter | undefined
}
