import type { Logger } from 'pino'
import { allFilters } from '../../../filters/index.ts'
import type { HubConfig, LiveConfig } from '../../config/hub-config.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { FilterChain, FilterChains } from '../filter/chain.ts'
import type { FilterDefinition } from '../filter/filter.ts'
import { Filters } from '../filter/filters.ts'
import type { NetworkVerdicts } from '../filter/host-network/verdicts.ts'
import { unknownInputs, type InputName, type Inputs } from '../filter/inputs.ts'
import type { AdditionalComponents } from '../filter/rule-matcher.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { FilterChangeHooks } from '../pipeline/filtered-watch.ts'
import { FailureLog } from './failure-log.ts'

/** The filters that the configuration in force enables; their failures go to log and metrics. */
export class EnabledFilters implements FilterChains, Disposable {
  readonly #filters: Filters
  readonly #failures: FailureLog
  readonly #verdicts: NetworkVerdicts
  #builtIn: readonly FilterDefinition[]
  #live: LiveConfig
  #own: readonly FilterDefinition[] = []

  constructor(config: HubConfig, verdicts: NetworkVerdicts, metrics: HubMetrics, log: Logger) {
    this.#live = config
    this.#verdicts = verdicts
    this.#failures = new FailureLog(log)
    this.#builtIn = allFilters(verdicts, propagationOf(config))
    const known = {
      ...unknownInputs,
      nodeName: config.nodeName,
      propagation: propagationOf(config),
    }
    this.#filters = new Filters(enabled(config, this.#builtIn), known, {
      warn: (message) => log.warn(message),
      onFailure: (filter, err) => {
        metrics.filterErrors.add({ filter })
        this.#failures.add(filter, err)
      },
      onDecision: (filter, result) => metrics.filterDecisions.add({ filter, result }),
    })
  }

  [Symbol.dispose](): void {
    this.#failures[Symbol.dispose]()
  }

  chainFor(...asked: Parameters<FilterChains['chainFor']>): FilterChain | undefined {
    return this.#filters.chainFor(...asked)
  }

  chainOf(...asked: Parameters<FilterChains['chainOf']>): FilterChain | undefined {
    return this.#filters.chainOf(...asked)
  }

  onChange(act: () => void): Disposable {
    return this.#filters.onChange(act)
  }

  /** What filters know now. */
  get inputs(): Inputs {
    return this.#filters.inputs
  }

  /** Whether the answer to an exchange may be changed, now or while it lasts. */
  actOn({ component, info }: Exchange): boolean {
    return info.isResource && this.chainFor(component, info.gvr, info.verb, info) !== undefined
  }

  /** What the filters that act on the answer to an exchange need to know. */
  needsOf({ component, info }: Exchange): ReadonlySet<InputName> {
    return info.isResource ? this.#filters.needs(component, info.gvr, info.verb, info) : nothing
  }

  /** The names of those that are not built in. */
  get ownNames(): readonly string[] {
    return this.#own.map(({ name }) => name)
  }

  /**
   * New values of what filters may know, plain data; those that are not named keep theirs. Called
   * by whoever learns something.
   */
  inform(inputs: Partial<Inputs>): void {
    this.#filters.setInputs(inputs)
  }

  /**
   * The components that filters act for besides those of their rules, by filter: in the place of
   * those added before.
   */
  components(additional: AdditionalComponents): void {
    this.#filters.setAdditionalComponents(additional)
  }

  /**
   * The filters that come after the built-in ones, in their order, in the place of those given
   * before. Throws where two have one name, and changes nothing then.
   */
  modules(definitions: readonly FilterDefinition[]): void {
    const names = [...this.#builtIn, ...definitions].map(({ name }) => name)
    const twice = names.find((name, at) => names.indexOf(name) !== at)
    if (twice !== undefined) throw new Error(`there are two filters of the name ${twice}`)
    this.#own = definitions
    this.#filters.setDefinitions(enabled(this.#live, [...this.#builtIn, ...definitions]))
  }

  /** Makes those filters anew that depend on whether verdicts are written. */
  remake(): void {
    this.#builtIn = allFilters(this.#verdicts, propagationOf(this.#live))
    this.#filters.setDefinitions(enabled(this.#live, [...this.#builtIn, ...this.#own]))
  }

  reconfigure(next: LiveConfig): void {
    const before = propagationOf(this.#live)
    this.#live = next
    if (propagationOf(next) !== before) {
      this.#builtIn = allFilters(this.#verdicts, propagationOf(next))
    }
    this.#filters.setDefinitions(enabled(next, [...this.#builtIn, ...this.#own]))
    this.#filters.setInputs({ propagation: propagationOf(next) })
  }
}

const nothing: ReadonlySet<InputName> = new Set()

/** What watches were owed goes to log and metrics. */
export const filterChangeHooks = (metrics: HubMetrics, log: Logger): FilterChangeHooks => ({
  onDifference: ({ component, gvr }, objects) => {
    metrics.filterDifferences.add({ component, resource: gvr.resource }, objects)
    log.info(
      { component, resource: qualifiedResource(gvr), objects },
      'a watch was told of the objects that its filters show otherwise now',
    )
  },
  onExpired: ({ component, gvr }, why) => {
    metrics.filterExpired.add({ component, resource: gvr.resource })
    log.info({ component, resource: qualifiedResource(gvr), why }, 'a watch has to list again')
  },
})

/** Those that have to keep to what they have shown stand in any case. */
const enabled = (
  { filters }: LiveConfig,
  all: readonly FilterDefinition[],
): readonly FilterDefinition[] =>
  all.filter(
    ({ name, actsWhenDisabled }) =>
      actsWhenDisabled ??
      (filters.enabled && !filters.disabled.has('*') && !filters.disabled.has(name)),
  )

const propagationOf = ({ hostNetworkPropagation }: LiveConfig): Inputs['propagation'] =>
  hostNetworkPropagation === 'guarded' ? 'off' : hostNetworkPropagation
