import { cursorOf } from '../codec/cursor.ts'
import { applyEdits } from '../codec/edit.ts'
import type { GVK, GVR } from '../kube/gvk.ts'
import type { Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import type { ResourceVerb } from '../request/request-info.ts'
import type { Filter, FilterDefinition, FilterRule } from './filter.ts'
import type { Inputs } from './inputs.ts'
import { Remembered, type Verdict } from './remembered.ts'

/** The filters that act for one component, resource and verb, in their order. */
export interface Chain {
  /** By name, for logs and metrics. */
  readonly filters: readonly string[]
  /**
   * What the component is shown of an object: the same instance where no filter changes it, `undefined` where one withholds it. Each
   * filter sees what those before it made. `gvk` is that of the object, not of its list.
   */
  look(gvk: GVK, encoding: Encoding, object: ApiObject): ApiObject | undefined
}

/** All filters of a hub. */
export interface FilterChain {
  /** `undefined` where no filter has anything to say, which is to be asked before anything is decoded. */
  chainFor(component: string, gvr: GVR, verb: ResourceVerb): Chain | undefined
}

/** Told of each object at which a filter failed; what became of it says the filter's `onError`. */
export type OnFilterFailure = (filter: string, cause: unknown) => void

/** Who is told of what filters have to say. */
export interface FilterTelling {
  readonly onFailure: OnFilterFailure
  readonly warn: (message: string) => void
}

/** Enough for what a node sees of its cluster, at a few kilobytes an object. */
const rememberedBytes = 16 * 1024 * 1024

interface Active {
  readonly definition: FilterDefinition
  readonly filter: Filter
}

/** Makes each filter once, in the order given; those that have nothing to do on this node are left out. */
export function filterChain(
  definitions: readonly FilterDefinition[],
  inputs: Inputs,
  { onFailure, warn }: FilterTelling,
): FilterChain {
  const active = definitions.flatMap((definition): Active[] => {
    const filter = definition.create(inputs, warn)
    return filter ? [{ definition, filter }] : []
  })
  const remembered = new Remembered(rememberedBytes)
  const chains = new Map<string, Chain>()
  return {
    chainFor(component, gvr, verb) {
      const acting = active.filter(({ definition }) =>
        definition.rules.some((rule) => applies(rule, component, gvr, verb)),
      )
      if (acting.length === 0) return undefined
      const filters = acting.map(({ definition }) => definition.name)
      // The same filters make the same look, whoever asks and however.
      const key = filters.join(' ')
      const known = chains.get(key)
      if (known) return known
      const chain = new FilterList(chains.size, acting, remembered, onFailure)
      chains.set(key, chain)
      return chain
    },
  }
}

const applies = (rule: FilterRule, component: string, gvr: GVR, verb: ResourceVerb): boolean =>
  rule.group === gvr.group &&
  rule.resources.includes(gvr.resource) &&
  rule.verbs.includes(verb) &&
  rule.components.includes(component)

class FilterList implements Chain {
  readonly filters: readonly string[]
  readonly #id: number
  readonly #acting: readonly Active[]
  readonly #remembered: Remembered
  readonly #onFailure: OnFilterFailure

  constructor(
    id: number,
    acting: readonly Active[],
    remembered: Remembered,
    onFailure: OnFilterFailure,
  ) {
    this.filters = acting.map(({ definition }) => definition.name)
    this.#id = id
    this.#acting = acting
    this.#remembered = remembered
    this.#onFailure = onFailure
  }

  look(gvk: GVK, encoding: Encoding, object: ApiObject): ApiObject | undefined {
    const known = this.#remembered.get(this.#id, gvk, encoding, object)
    if (known !== undefined) return lookOf(known, object)
    const { verdict, failed } = this.#judge(gvk, encoding, object)
    // A failure may be cured by the next try, and is counted at each.
    if (!failed) this.#remembered.set(this.#id, gvk, encoding, object, verdict)
    return lookOf(verdict, object)
  }

  #judge(gvk: GVK, encoding: Encoding, object: ApiObject): { verdict: Verdict; failed: boolean } {
    let shown = object
    let failed = false
    for (const { definition, filter } of this.#acting) {
      try {
        const judgement = filter(cursorOf(encoding, gvk, shown))
        if (judgement === 'withhold') return { verdict: 'withheld', failed }
        if (judgement !== 'leave') shown = applyEdits(encoding, gvk, shown, judgement)
      } catch (cause) {
        failed = true
        this.#onFailure(definition.name, cause)
        if (definition.onError === 'withhold') return { verdict: 'withheld', failed }
      }
    }
    return { verdict: shown === object ? 'left' : shown, failed }
  }
}

function lookOf(verdict: Verdict, object: ApiObject): ApiObject | undefined {
  if (verdict === 'left') return object
  return verdict === 'withheld' ? undefined : verdict
}
