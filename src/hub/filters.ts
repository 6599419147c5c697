import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import { builtInFilters } from '../../filters/index.ts'
import type { HubConfig } from '../config/hub-config.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { filterChain, type Chain, type FilterChain, type OnFilterFailure } from '../filter/chain.ts'
import type { FilterDefinition } from '../filter/filter.ts'
import type { Inputs } from '../filter/inputs.ts'
import type { GVR } from '../kube/gvk.ts'
import type { HubMetrics } from '../metrics/metrics.ts'
import type { ResourceVerb } from '../request/request-info.ts'

/** The filters that the configuration in force enables; their failures go to log and metrics. */
export class EnabledFilters implements FilterChain {
  readonly #metrics: HubMetrics
  readonly #log: Logger
  readonly #inputs: Inputs
  #config: HubConfig
  #chain: FilterChain

  constructor(config: HubConfig, metrics: HubMetrics, log: Logger) {
    this.#metrics = metrics
    this.#log = log
    this.#inputs = inputsOf(config)
    this.#config = config
    this.#chain = this.#chainOf(config)
  }

  chainFor(component: string, gvr: GVR, verb: ResourceVerb): Chain | undefined {
    return this.#chain.chainFor(component, gvr, verb)
  }

  /** Whether the answer to an exchange may be changed. */
  actOn({ component, info }: Exchange): boolean {
    return info.isResource && this.chainFor(component, info.gvr, info.verb) !== undefined
  }

  reconfigure(next: HubConfig): void {
    const same = isDeepStrictEqual(enabled(next), enabled(this.#config))
    this.#config = next
    // A new chain would lose what filters remember.
    if (!same) this.#chain = this.#chainOf(next)
  }

  #chainOf(config: HubConfig): FilterChain {
    const warn = (message: string): void => this.#log.warn(message)
    const onFailure: OnFilterFailure = (filter, err) => {
      this.#metrics.filterErrors.add({ filter })
      this.#log.error({ filter, err }, 'a filter failed')
    }
    return filterChain(enabled(config), this.#inputs, { onFailure, warn })
  }
}

const enabled = ({ filters }: HubConfig): readonly FilterDefinition[] =>
  filters.enabled && !filters.disabled.has('*')
    ? builtInFilters.filter(({ name }) => !filters.disabled.has(name))
    : []

const inputsOf = ({ nodeName, pods }: HubConfig): Inputs => ({
  nodeName,
  node: undefined,
  pool: undefined,
  poolNodes: undefined,
  topologies: undefined,
  // By default the hub listens on loopback, with a certificate that pods do not trust: the operator says so where it is otherwise.
  hubAddress: pods.hubAddress ?? null,
  propagation: 'off',
})
