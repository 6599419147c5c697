import type { GVR } from '../../api/kube/gvk.ts'
import { namedBySelector, type ResourceVerb } from '../../api/request/request-info.ts'
import type { RequestScope } from './chain.ts'
import type { FilterDefinition, FilterRule } from './filter.ts'

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

/**
 * Finds the filters whose rules match a request. Results are cached for each kind of request,
 * because each request matches several times.
 */
export class RuleMatcher {
  readonly #definitions: readonly FilterDefinition[]
  readonly #additional: AdditionalComponents
  readonly #matched = new Map<string, MatchedKind>()

  constructor(definitions: readonly FilterDefinition[], additional: AdditionalComponents) {
    this.#definitions = definitions
    this.#additional = additional
  }

  /** The matching filters, in order. */
  match(
    component: string,
    gvr: GVR,
    verb: ResourceVerb,
    scope: RequestScope | undefined,
  ): readonly FilterDefinition[] {
    const { filters, always } = this.#matchKind(component, gvr, verb)
    if (always) return always
    return filters
      .filter(({ rules }) => rules.some((rule) => mayContain(scope, rule)))
      .map(({ definition }) => definition)
  }

  #matchKind(component: string, gvr: GVR, verb: ResourceVerb): MatchedKind {
    // No path and no header contains NUL.
    const kind = `${component}\0${verb}\0${gvr.resource}\0${gvr.group}`
    const known = this.#matched.get(kind)
    if (known) return known
    const filters = this.#definitions.flatMap((definition) => {
      const isAdded = this.#additional.get(definition.name)?.has(component) === true
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
