import { cursorOf } from '../../api/codec/cursor.ts'
import { applyEdits } from '../../api/codec/edit.ts'
import { isMirrorPod } from '../../api/codec/mirror-pod.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { ResourceRequest, ResourceVerb } from '../../api/request/request-info.ts'
import type { ChainState } from './chain-state.ts'
import type { FilterDefinition, SettlingFilter, Filter } from './filter.ts'
import type { InputName } from './inputs.ts'
import type { DecisionCache, Decision } from './decision-cache.ts'

/**
 * The filters that apply to one component, resource and verb, in order, for one state of their
 * inputs. Immutable: changed inputs make another chain.
 */
export interface FilterChain {
  /** The names of the filters that act, for logs and metrics. */
  readonly filters: readonly string[]
  /**
   * The state on which decisions depend besides the object. All chains with the same state decide
   * the same for the same object.
   */
  readonly state: ChainState
  /** Inputs that are unknown and awaited. Until they are known, the hub must not answer. */
  readonly missingInputs: readonly InputName[]
  /** Whether `prepare` may return a promise. */
  readonly needsPreparing: boolean
  /**
   * The object as the component gets it: the same instance where no filter changes it, `undefined`
   * where one withholds it. Each filter gets the result of the filters before it. `gvk` is the
   * object's, not that of its list.
   */
  apply(gvk: GVK, encoding: Encoding, object: ApiObject): ApiObject | undefined
  /**
   * Has to resolve before any of these objects is sent (see `SettlingFilter`); `undefined`: nothing
   * to wait for. Rejects where the objects must not be sent now.
   */
  prepare(gvk: GVK, encoding: Encoding, objects: readonly ApiObject[]): Promise<void> | undefined
}

/** The same chain, where it decides or prepares otherwise. */
export const chainWith = (
  chain: FilterChain,
  otherwise: Partial<Pick<FilterChain, 'apply' | 'prepare'>>,
): FilterChain => ({
  filters: chain.filters,
  state: chain.state,
  missingInputs: chain.missingInputs,
  needsPreparing: chain.needsPreparing,
  apply: (...object) => chain.apply(...object),
  prepare: (...objects) => chain.prepare(...objects),
  ...otherwise,
})

/**
 * The part of a request that narrows it to some objects of its resource. Absent: the request is
 * about all.
 */
export type RequestScope = Pick<ResourceRequest, 'namespace' | 'name' | 'query'>

/** The filter chains of a hub. */
export interface FilterChains {
  /**
   * The current chain; `undefined` where no filter matches. Callers check this before they decode
   * anything.
   */
  chainFor(
    component: string,
    gvr: GVR,
    verb: ResourceVerb,
    scope?: RequestScope,
  ): FilterChain | undefined
  /** Calls `act` whenever `chainFor` may return another chain than before, until disposed. */
  onChange(act: () => void): Disposable
}

/**
 * Called for each object at which a filter fails. The filter's `onError` decides what happens to
 * the object.
 */
export type OnFilterFailure = (filter: string, cause: unknown) => void

/** Receives the failures, warnings and decisions of filters. */
export interface FilterObserver {
  readonly onFailure: OnFilterFailure
  readonly warn: (message: string) => void
  /** Called when a filter withholds or edits an object, once for each cached decision. */
  readonly onDecision?: (filter: string, result: 'withheld' | 'edited') => void
}

/** A filter that acts, with its definition. */
export interface ActiveFilter {
  readonly definition: FilterDefinition
  readonly filter: Filter | SettlingFilter
}

export interface FilterListOptions {
  readonly active: readonly ActiveFilter[]
  readonly state: ChainState
  readonly missingInputs: readonly InputName[]
  readonly decisions: DecisionCache
  readonly observer: FilterObserver
}

/** Distinguishes chains in the decision cache. */
let nextChainId = 0

export class FilterList implements FilterChain {
  readonly filters: readonly string[]
  readonly state: ChainState
  readonly missingInputs: readonly InputName[]
  readonly needsPreparing: boolean
  readonly #id = nextChainId++
  readonly #options: FilterListOptions
  readonly #settling: readonly SettlingFilter[]

  constructor(options: FilterListOptions) {
    this.filters = options.active.map(({ definition }) => definition.name)
    this.state = options.state
    this.missingInputs = options.missingInputs
    this.#options = options
    this.#settling = options.active.flatMap((each) =>
      typeof each.filter === 'function' ? [] : [each.filter],
    )
    this.needsPreparing = this.#settling.length > 0
  }

  apply(gvk: GVK, encoding: Encoding, object: ApiObject): ApiObject | undefined {
    const { active, decisions } = this.#options
    if (active.length === 0) return object
    const known = decisions.get(this.#id, gvk, encoding, object)
    if (known !== undefined) return decided(known, object)
    const { decision, failed } = isMirror(gvk, encoding, object)
      ? left
      : this.#decide(gvk, encoding, object)
    // The next attempt may succeed, so failures are not cached; each one is counted.
    if (!failed) decisions.set(this.#id, gvk, encoding, object, decision)
    return decided(decision, object)
  }

  prepare(gvk: GVK, encoding: Encoding, objects: readonly ApiObject[]): Promise<void> | undefined {
    if (this.#settling.length === 0 || objects.length === 0) return undefined
    const prepared = objects
      .filter((object) => !isMirror(gvk, encoding, object))
      .map((object) => ({ cursor: cursorOf(encoding, gvk, object), uid: object.uid }))
    const settled = this.#settling.flatMap((filter) => filter.before(prepared) ?? [])
    return settled.length === 0 ? undefined : Promise.all(settled).then(() => undefined)
  }

  #decide(gvk: GVK, encoding: Encoding, object: ApiObject): DecisionResult {
    const { active, observer } = this.#options
    let result = object
    let failed = false
    for (const { definition, filter } of active) {
      const { name } = definition
      try {
        const decide = typeof filter === 'function' ? filter : filter.filter
        const decision = decide(cursorOf(encoding, gvk, result))
        if (decision === 'withhold') {
          if (definition.withholds === false) throw new Error('the filter may withhold nothing')
          observer.onDecision?.(name, 'withheld')
          return { decision: 'withheld', failed }
        }
        if (decision === 'leave') continue
        const edited = applyEdits(encoding, gvk, result, decision)
        if (edited !== result) observer.onDecision?.(name, 'edited')
        result = edited
      } catch (cause) {
        failed = true
        observer.onFailure(name, cause)
        if (definition.onError === 'withhold') return { decision: 'withheld', failed }
      }
    }
    return { decision: result === object ? 'left' : result, failed }
  }
}

interface DecisionResult {
  readonly decision: Decision
  readonly failed: boolean
}

const left: DecisionResult = { decision: 'left', failed: false }

/** Mirror pods pass unchanged. */
const isMirror = (gvk: GVK, encoding: Encoding, object: ApiObject): boolean => {
  if (gvk.kind !== 'Pod' || gvk.group !== '') return false
  try {
    return isMirrorPod(cursorOf(encoding, gvk, object))
  } catch {
    // The filters fail at an object that cannot be read, and count it.
    return false
  }
}

function decided(decision: Decision, object: ApiObject): ApiObject | undefined {
  if (decision === 'left') return object
  return decision === 'withheld' ? undefined : decision
}
