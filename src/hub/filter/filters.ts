import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import { Broadcast } from '../../base/broadcast.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import { ownComponent } from '../../api/request/component.ts'
import type { ResourceVerb } from '../../api/request/request-info.ts'
import {
  FilterList,
  type Asked,
  type Chain,
  type FilterChain,
  type FilterTelling,
  type MadeFilter,
} from './chain.ts'
import { areSame, chainState, inputsIn, unknownOf, type ChainState } from './chain-state.ts'
import type { Filter, FilterDefinition, SettlingFilter } from './filter.ts'
import { nothingKnown, type InputName, type Inputs } from './inputs.ts'
import { Remembered } from './remembered.ts'
import { Standing, type AddedComponents } from './standing.ts'

/** Enough for what a node sees of its cluster, at a few kilobytes an object. */
const rememberedBytes = 16 * 1024 * 1024

/** Chains of other times that are asked for again: one for each state that clients were left in. */
const mostFormer = 64

/** A filter as it was made last, and of what. */
interface Making {
  readonly definition: FilterDefinition
  readonly given: Partial<Inputs>
  /** What it has to wait for. */
  readonly missing: readonly InputName[]
  /** `undefined`: it has nothing to do. */
  readonly made: Filter | SettlingFilter | undefined
}

/**
 * Filters, each made once of what it needs and anew when one of its needs has changed. What changes
 * at one time is told together, and only where it can make a difference.
 */
export class Filters implements FilterChain {
  readonly #telling: FilterTelling
  readonly #remembered = new Remembered(rememberedBytes)
  readonly #former = new LRUCache<string, Chain>({ max: mostFormer })
  readonly #changed = new Broadcast()
  readonly #warned = new Map<string, string>()
  #definitions: readonly FilterDefinition[]
  #inputs: Inputs
  #added: AddedComponents = new Map()
  #rules: Standing
  #makings = new Map<string, Making>()
  /** By the names of those that stand. */
  #chains = new Map<string, Chain>()

  constructor(definitions: readonly FilterDefinition[], inputs: Inputs, telling: FilterTelling) {
    this.#telling = telling
    this.#definitions = definitions
    this.#inputs = inputs
    this.#rules = new Standing(definitions, this.#added)
    this.#make()
  }

  /** As they were told last. */
  get inputs(): Inputs {
    return this.#inputs
  }

  chainFor(component: string, gvr: GVR, verb: ResourceVerb, asked?: Asked): Chain | undefined {
    const standing = this.#standing(component, gvr, verb, asked)
    if (standing.length === 0) return undefined
    // The same filters make the same look, whoever asks and however.
    const key = namesOf(standing)
    const known = this.#chains.get(key)
    if (known) return known
    const chain = this.#chainOf(standing)
    this.#chains.set(key, chain)
    return chain
  }

  chainOf(
    component: string,
    gvr: GVR,
    verb: ResourceVerb,
    state: ChainState,
    asked?: Asked,
  ): Chain | undefined {
    const current = this.chainFor(component, gvr, verb, asked)
    if (!current || areSame(current.state, state)) return current
    if (current.state.chain !== state.chain) return undefined
    const key = JSON.stringify([state.chain, state.inputs])
    const known = this.#former.get(key)
    if (known) return known
    // Of another time only what filters needed then is known; what they did not need they are not
    // given.
    const inputs: Inputs = { ...nothingKnown, ...inputsIn(state) }
    const standing = this.#standing(component, gvr, verb, asked)
    // Nobody was shown anything before all was known that ever would be.
    const acting = standing.flatMap((definition) => {
      const made = this.#create(definition, given(definition, inputs), () => undefined)
      return made ? [{ definition, made }] : []
    })
    const chain = this.#list(acting, state, [])
    this.#former.set(key, chain)
    return chain
  }

  /** What the filters that stand for these need to know. */
  needs(component: string, gvr: GVR, verb: ResourceVerb, asked?: Asked): ReadonlySet<InputName> {
    const standing = this.#standing(component, gvr, verb, asked)
    return standing.length === 0 ? nothing : new Set(standing.flatMap(({ needs }) => needs))
  }

  onChange(act: () => void): Disposable {
    return this.#changed.listen(act)
  }

  /** New values of inputs; those that are not named keep theirs. */
  inform(inputs: Partial<Inputs>): void {
    const next = { ...this.#inputs, ...inputs }
    if (isDeepStrictEqual(next, this.#inputs)) return
    this.#inputs = next
    this.#renew()
  }

  /**
   * The components that filters act for besides those of their rules, in the place of those added
   * before.
   */
  components(additional: AddedComponents): void {
    if (isDeepStrictEqual(additional, this.#added)) return
    this.#added = additional
    this.#renew()
  }

  /** Other filters, in their order. */
  define(definitions: readonly FilterDefinition[]): void {
    const same =
      definitions.length === this.#definitions.length &&
      definitions.every((definition, at) => definition === this.#definitions[at])
    if (same) return
    this.#definitions = definitions
    this.#former.clear()
    this.#renew()
  }

  #renew(): void {
    this.#rules = new Standing(this.#definitions, this.#added)
    this.#make()
    this.#changed.announce()
  }

  #make(): void {
    const before = this.#makings
    const chains = this.#chains
    this.#makings = new Map(
      this.#definitions.map((definition) => [
        definition.name,
        this.#remade(definition, before.get(definition.name)),
      ]),
    )
    // A chain of filters that are the ones they were stays, with what is remembered of it.
    const kept = [...chains].filter(([key]) =>
      namesIn(key).every((name) => this.#makings.get(name) === before.get(name)),
    )
    this.#chains = new Map(kept)
  }

  #remade(definition: FilterDefinition, before: Making | undefined): Making {
    const needed = given(definition, this.#inputs)
    const missing = unknownOf([definition], this.#inputs)
    const isSame =
      before?.definition === definition &&
      isDeepStrictEqual(before.given, needed) &&
      isDeepStrictEqual(before.missing, missing)
    if (isSame) return before
    const warn = (message: string): void => {
      if (this.#warned.get(definition.name) === message) return
      this.#warned.set(definition.name, message)
      this.#telling.warn(message)
    }
    const made = missing.length === 0 ? this.#create(definition, needed, warn) : undefined
    return { definition, given: needed, missing, made }
  }

  /** A filter that cannot be made is one that fails at every object. */
  #create(
    definition: FilterDefinition,
    needed: Partial<Inputs>,
    warn: (message: string) => void,
  ): Filter | SettlingFilter | undefined {
    try {
      return definition.create(needed as Inputs, warn)
    } catch (cause) {
      this.#telling.onFailure(definition.name, cause)
      return definition.onError === 'pass' ? undefined : () => 'withhold'
    }
  }

  #standing(
    component: string,
    gvr: GVR,
    verb: ResourceVerb,
    asked: Asked | undefined,
  ): readonly FilterDefinition[] {
    // The hub's own requests are about what is, not about what is shown.
    return component === ownComponent ? [] : this.#rules.for(component, gvr, verb, asked)
  }

  #chainOf(standing: readonly FilterDefinition[]): Chain {
    const acting = standing.flatMap((definition) => {
      const made = this.#makings.get(definition.name)?.made
      return made ? [{ definition, made }] : []
    })
    const state = chainState(standing, this.#inputs, acting.length > 0)
    const missing = unknownOf(standing, this.#inputs)
    return this.#list(acting, state, missing)
  }

  #list(acting: readonly MadeFilter[], state: ChainState, missing: readonly InputName[]): Chain {
    const [remembered, telling] = [this.#remembered, this.#telling]
    return new FilterList({ acting, state, unknown: missing, remembered, telling })
  }
}

const nothing: ReadonlySet<InputName> = new Set()

/** What a filter is given: nothing but what it needs. */
const given = ({ needs }: FilterDefinition, inputs: Partial<Inputs>): Partial<Inputs> =>
  Object.fromEntries(needs.map((need) => [need, inputs[need]]))

const namesOf = (definitions: readonly FilterDefinition[]): string =>
  JSON.stringify(definitions.map(({ name }) => name))

const namesIn = (key: string): readonly string[] => JSON.parse(key) as string[]
