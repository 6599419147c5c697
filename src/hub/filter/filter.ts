import type { Cursor } from '../../api/codec/cursor.ts'
import type { Edit } from '../../api/codec/edit.ts'
import type { ResourceVerb } from '../../api/request/request-info.ts'
import type { InputName, Inputs } from './inputs.ts'

export type { Cursor, Element } from '../../api/codec/cursor.ts'
export type { Edit } from '../../api/codec/edit.ts'

/**
 * All verbs whose answers contain objects: reads, and writes, whose replies contain the object as a
 * read would.
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
 * Decides on one object. Must depend on nothing but the object and the arguments of `create`: lists
 * and watches show the same, and watches share a decision.
 */
export type Filter = (object: Cursor) => 'leave' | 'withhold' | readonly Edit[]

export interface FilterRule {
  /** Lower-case names, as in `componentOf`. The cluster's ConfigMap adds to them. */
  readonly components: readonly string[]
  readonly group: string
  readonly resources: readonly string[]
  readonly verbs: readonly ResourceVerb[]
  /** The one object that the rule is about: answers that cannot contain it are not decoded. */
  readonly only?: { readonly namespace: string; readonly name: string }
}

/** A filter with its rules and inputs. */
export interface FilterDefinition<Needs extends InputName = InputName> {
  readonly name: string
  /**
   * Distinguishes versions of the code that decide differently from the same inputs: clients of the
   * other version have to list again. '' where absent.
   */
  readonly revision?: string
  readonly rules: readonly FilterRule[]
  /** What happens to an object at which the filter throws. */
  readonly onError: 'pass' | 'withhold'
  /**
   * False: the filter changes objects and withholds none. It filters an event without the previous
   * state of the object, which the hub then need not read. To withhold one nevertheless is an
   * error.
   */
  readonly withholds?: false
  /**
   * In protobuf its edits keep an object's length, where Go wrote it, and it withholds none: a list
   * need not be read whole before its length is sent. To change one nevertheless is an error.
   */
  readonly keepsLength?: true
  /**
   * The inputs of `create`. When one of these changes, the hub creates the filter again, and
   * clients have to list again.
   */
  readonly needs: readonly Needs[]
  /**
   * Those of `needs` that the filter cannot decide without. While one is unknown, its components
   * get 503, as for a collection that was never listed. Where the hub may not read the input at
   * all, `create` gets `undefined`.
   */
  readonly awaits?: readonly Needs[]
  /**
   * The filter is active even where it is switched off, because it has to keep earlier decisions.
   * That it is switched off is then one of its inputs.
   */
  readonly actsWhenDisabled?: true
  /**
   * It decides by the object alone: a client was shown the same before a restart of the hub, and
   * need not list.
   */
  readonly neverChanges?: true
  /**
   * `undefined`: the filter has nothing to do here. Call `warn` where this could surprise the
   * operator.
   */
  create(inputs: Pick<Inputs, Needs>, warn: (message: string) => void): Filter | undefined
}
