import { isDeepStrictEqual } from 'node:util'
import { Broadcast } from '../../base/broadcast.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { ownComponent } from '../../api/request/component.ts'
import {
  namedBySelector,
  type RequestInfo,
  type ResourceVerb,
} from '../../api/request/request-info.ts'
import {
  applying,
  type RequestScope,
  type FilterChain,
  type FilterObserver,
  type ActiveFilter,
  type FilterDecision,
} from './chain.ts'
import { chainState, missingInputs } from './chain-state.ts'
import type { Filter, FilterDefinition, FilterRule } from './filter.ts'
import type { InputName, Inputs } from './inputs.ts'

/** A request, and the component that sends it. */
interface FilteredRequest {
  readonly component: string
  readonly info: RequestInfo
}

/** What the filters do with an object. */
interface DecidedObject {
  /** In order, up to the filter that withholds the object. */
  readonly decisions: readonly FilterDecision[]
  /** `undefined`: it is withheld. */
  readonly object: ApiObject | undefined
  readonly waitsFor: readonly InputName[]
}

/** A filter as it was last created, with its inputs. */
interface BuiltFilter {
  readonly definition: FilterDefinition
  readonly given: Partial<Inputs>
  /** Awaited inputs that are unknown. */
  readonly missing: readonly InputName[]
  /** `undefined`: the filter does not act. */
  readonly filter: Filter | undefined
}

/**
 * Creates each filter once, and again when one of its inputs changes. Announces changes only where
 * they can affect an answer.
 */
export class Filters {
  readonly #observer: FilterObserver
  readonly #changed = new Broadcast()
  readonly #warned = new Map<string, string>()
  #definitions: readonly FilterDefinition[]
  #inputs: Inputs
  #additionalComponents: AdditionalComponents = new Map()
  readonly #matched = new Map<string, MatchedKind>()
  #built = new Map<string, BuiltFilter>()
  /** By the names of their filters. */
  #chains = new Map<string, FilterChain>()

  constructor(definitions: readonly FilterDefinition[], inputs: Inputs, observer: FilterObserver) {
    this.#observer = observer
    this.#definitions = definitions
    this.#inputs = inputs
    this.#buildFilters()
  }

  /** The filters in order, each with the inputs it waits for, and whether it acts. */
  get all(): readonly Pick<BuiltFilter, 'definition' | 'missing' | 'filter'>[] {
    return [...this.#built.values()]
  }

  /** The current inputs. */
  get inputs(): Inputs {
    return this.#inputs
  }

  /** The current chain of a request; `undefined` where no filter matches. */
  chainOf({ component, info }: FilteredRequest): FilterChain | undefined {
    return info.isResource ? this.chainFor(component, info.gvr, info.verb, info) : undefined
  }

  /**
   * The current chain; `undefined` where no filter matches. Callers check this before they decode
   * anything.
   */
  chainFor(
    component: string,
    gvr: GVR,
    verb: ResourceVerb,
    scope?: RequestScope,
  ): FilterChain | undefined {
    const definitions = this.#matching(component, gvr, verb, scope)
    if (definitions.length === 0) return undefined
    // The same filters decide the same for every request.
    const key = namesOf(definitions)
    const known = this.#chains.get(key)
    if (known) return known
    const chain = this.#newChain(definitions)
    this.#chains.set(key, chain)
    return chain
  }

  /**
   * Whether a filter may withhold objects of the answer, now or under other inputs: then the type
   * of an event depends on the previous state of its object.
   */
  mayWithholdOf({ component, info }: FilteredRequest): boolean {
    return info.isResource && this.#matching(component, info.gvr, info.verb, info).some(canWithhold)
  }

  /**
   * The decisions of the filters now on an object that a component lists, for people: they are not
   * counted.
   */
  decisionsOn(
    component: string,
    gvr: GVR,
    ...of: readonly [gvk: GVK, encoding: Encoding, object: ApiObject]
  ): DecidedObject {
    const definitions = this.#matching(component, gvr, 'list', undefined)
    const decisions: FilterDecision[] = []
    const apply = applying(this.#active(definitions), (filter, decision) =>
      decisions.push({ filter, decision }),
    )
    const object = apply(...of)
    return { decisions, object, waitsFor: missingInputs(definitions, this.#inputs) }
  }

  /** Calls `act` whenever `chainOf` may return another chain than before, until disposed. */
  onChange(act: () => void): Disposable {
    return this.#changed.listen(act)
  }

  /** Sets inputs; those not named keep their values. */
  setInputs(inputs: Partial<Inputs>): void {
    const next = { ...this.#inputs, ...inputs }
    if (isDeepStrictEqual(next, this.#inputs)) return
    this.#inputs = next
    this.#rebuild()
  }

  /** Replaces the components that filters act for besides those in their rules. */
  setAdditionalComponents(additional: AdditionalComponents): void {
    if (isDeepStrictEqual(additional, this.#additionalComponents)) return
    this.#additionalComponents = additional
    this.#rebuild()
  }

  /** Replaces the filters, in order. */
  setDefinitions(definitions: readonly FilterDefinition[]): void {
    const same =
      definitions.length === this.#definitions.length &&
      definitions.every((definition, at) => definition === this.#definitions[at])
    if (same) return
    this.#definitions = definitions
    this.#rebuild()
  }

  #rebuild(): void {
    this.#matched.clear()
    this.#buildFilters()
    this.#changed.announce()
  }

  #buildFilters(): void {
    const before = this.#built
    this.#built = new Map(
      this.#definitions.map((definition) => [
        definition.name,
        this.#build(definition, before.get(definition.name)),
      ]),
    )
    this.#chains = new Map()
  }

  #build(definition: FilterDefinition, before: BuiltFilter | undefined): BuiltFilter {
    const needed = given(definition, this.#inputs)
    const missing = missingInputs([definition], this.#inputs)
    const isSame =
      before?.definition === definition &&
      isDeepStrictEqual(before.given, needed) &&
      isDeepStrictEqual(before.missing, missing)
    if (isSame) return before
    const warn = (message: string): void => {
      if (this.#warned.get(definition.name) === message) return
      this.#warned.set(definition.name, message)
      this.#observer.warn(message)
    }
    const filter = missing.length === 0 ? this.#create(definition, needed, warn) : undefined
    return { definition, given: needed, missing, filter }
  }

  /** A filter whose `create` throws counts as failing at every object. */
  #create(
    definition: FilterDefinition,
    needed: Partial<Inputs>,
    warn: (message: string) => void,
  ): Filter | undefined {
    try {
      return definition.create(needed as Inputs, warn)
    } catch (cause) {
      this.#observer.onDecision(definition.name, 'failed', cause)
      return definition.onError === 'pass' ? undefined : () => 'withhold'
    }
  }

  /** The filters whose rules match a request, in order. */
  #matching(
    component: string,
    gvr: GVR,
    verb: ResourceVerb,
    scope: RequestScope | undefined,
  ): readonly FilterDefinition[] {
    // The hub's own requests read the unfiltered objects.
    if (component === ownComponent) return []
    const { filters, always } = this.#matchKind(component, gvr, verb)
    if (always) return always
    return filters
      .filter(({ rules }) => rules.some((rule) => mayContain(scope, rule)))
      .map(({ definition }) => definition)
  }

  /** Remembered for each kind of request, because each request matches several times. */
  #matchKind(component: string, gvr: GVR, verb: ResourceVerb): MatchedKind {
    // No path and no header contains NUL.
    const kind = `${component}\0${verb}\0${gvr.resource}\0${gvr.group}`
    const known = this.#matched.get(kind)
    if (known) return known
    const filters = this.#definitions.flatMap((definition) => {
      const isAdded = this.#additionalComponents.get(definition.name)?.has(component) === true
      const rules = definition.rules.filter(
        (rule) => (isAdded || rule.components.includes(component)) && covers(rule, gvr, verb),
      )
      return rules.length > 0 ? [{ definition, rules }] : []
    })
    // Clients choose their component names, so the cache has to be bounded.
    if (this.#matched.size >= mostKinds) this.#matched.clear()
    const isForOne = filters.some(({ rules }) => rules.some(({ only }) => only !== undefined))
    const always = isForOne ? undefined : filters.map(({ definition }) => definition)
    const matched = { filters, always }
    this.#matched.set(kind, matched)
    return matched
  }

  #active(definitions: readonly FilterDefinition[]): readonly ActiveFilter[] {
    return definitions.flatMap((definition) => {
      const filter = this.#built.get(definition.name)?.filter
      return filter ? [{ definition, filter }] : []
    })
  }

  #newChain(definitions: readonly FilterDefinition[]): FilterChain {
    const active = this.#active(definitions)
    const acts = active.some(({ definition }) => !definition.neverChanges)
    return {
      filters: active.map(({ definition }) => definition.name),
      state: chainState(definitions, this.#inputs, acts),
      missingInputs: missingInputs(definitions, this.#inputs),
      needs: new Set(definitions.flatMap(({ needs }) => needs)),
      keepsLengths: active.every(({ definition }) => definition.keepsLength),
      apply: applying(active, this.#observer.onDecision),
    }
  }
}

const canWithhold = ({ withholds, onError }: FilterDefinition): boolean =>
  withholds !== false || onError === 'withhold'

/** The inputs that a filter needs, and no others. */
const given = ({ needs }: FilterDefinition, inputs: Partial<Inputs>): Partial<Inputs> =>
  Object.fromEntries(needs.map((need) => [need, inputs[need]]))

const namesOf = (definitions: readonly FilterDefinition[]): string =>
  JSON.stringify(definitions.map(({ name }) => name))

/** Additional components by filter name, besides those of the rules of the filter. */
export type AdditionalComponents = ReadonlyMap<string, ReadonlySet<string>>

/** More kinds of requests than the components of a node make. */
const mostKinds = 512

/** The filters of a kind of request. */
interface MatchedKind {
  readonly filters: readonly MatchedFilter[]
  /** All of them, where none is for one object only. */
  readonly always: readonly FilterDefinition[] | undefined
}

/** A filter with the rules that match a kind of request. */
interface MatchedFilter {
  readonly definition: FilterDefinition
  readonly rules: readonly FilterRule[]
}

const covers = (rule: FilterRule, gvr: GVR, verb: ResourceVerb): boolean =>
  rule.group === gvr.group && rule.resources.includes(gvr.resource) && rule.verbs.includes(verb)

/** Whether the answer may contain the object that the rule is about. */
function mayContain(scope: RequestScope | undefined, { only }: FilterRule): boolean {
  if (!scope || !only) return true
  if (scope.namespace !== undefined && scope.namespace !== only.namespace) return false
  const name = scope.name ?? namedBySelector(scope)
  return name === undefined || name === only.name
}
