import type { GVR } from '../../api/kube/gvk.ts'
import { namedBySelector, type ResourceVerb } from '../../api/request/request-info.ts'
import type { Asked } from './chain.ts'
import type { FilterDefinition, FilterRule } from './filter.ts'

/** What components are added to those of a filter's rules, by its name. */
export type AddedComponents = ReadonlyMap<string, ReadonlySet<string>>

/** More kinds of requests than the programs of a node make. */
const mostKinds = 512

/** A filter with those of its rules that are about a kind of request. */
interface Concerned {
  readonly definition: FilterDefinition
  readonly rules: readonly FilterRule[]
}

/**
 * Tells which of some filters stand for a request. Rules are gone through once for each kind of
 * request: each request asks several times.
 */
export class Standing {
  readonly #definitions: readonly FilterDefinition[]
  readonly #added: AddedComponents
  readonly #concerned = new Map<string, readonly Concerned[]>()

  constructor(definitions: readonly FilterDefinition[], added: AddedComponents) {
    this.#definitions = definitions
    this.#added = added
  }

  /** In their order. */
  for(
    component: string,
    gvr: GVR,
    verb: ResourceVerb,
    asked: Asked | undefined,
  ): readonly FilterDefinition[] {
    const concerned = this.#concernedWith(component, gvr, verb)
    if (concerned.length === 0) return none
    return concerned
      .filter(({ rules }) => rules.some((rule) => mayShow(asked, rule)))
      .map(({ definition }) => definition)
  }

  #concernedWith(component: string, gvr: GVR, verb: ResourceVerb): readonly Concerned[] {
    // No path and no header has a NUL.
    const kind = `${component}\0${verb}\0${gvr.resource}\0${gvr.group}`
    const known = this.#concerned.get(kind)
    if (known) return known
    const concerned = this.#definitions.flatMap((definition) => {
      const isAdded = this.#added.get(definition.name)?.has(component) === true
      const rules = definition.rules.filter(
        (rule) => (isAdded || rule.components.includes(component)) && covers(rule, gvr, verb),
      )
      return rules.length > 0 ? [{ definition, rules }] : []
    })
    // Clients choose their names.
    if (this.#concerned.size >= mostKinds) this.#concerned.clear()
    this.#concerned.set(kind, concerned)
    return concerned
  }
}

const none: readonly FilterDefinition[] = []

const covers = (rule: FilterRule, gvr: GVR, verb: ResourceVerb): boolean =>
  rule.group === gvr.group && rule.resources.includes(gvr.resource) && rule.verbs.includes(verb)

/** Whether the answer may have the object that the rule is about. */
function mayShow(asked: Asked | undefined, { only }: FilterRule): boolean {
  if (!asked || !only) return true
  if (asked.namespace !== undefined && asked.namespace !== only.namespace) return false
  const name = asked.name ?? namedBySelector(asked)
  return name === undefined || name === only.name
}
