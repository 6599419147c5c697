import type { Logger } from 'pino'
import { now } from '../../base/clock.ts'
import { allFilters } from '../../../filters/index.ts'
import type { LiveConfig } from '../../config/hub-config.ts'
import type { FilterDefinition } from '../filter/filter.ts'
import { Filters } from '../filter/filters.ts'
import { unknownInputs } from '../filter/inputs.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { FilterParts } from '../pipeline/filtered-watch.ts'
import { filterNames } from '../../config/filter-names.ts'
import { loadFilters, type LoadedFilters } from '../filter/own/load.ts'
import type { HubContext } from './hub-context.ts'

/** A filter, its present state, and its decisions since the start. */
export interface FilterStatus {
  readonly name: string
  /**
   * `acting`; `waiting` for inputs, while its components get 503; `idle`: it has nothing to do
   * here; `disabled` by the configuration.
   */
  readonly state: 'acting' | 'waiting' | 'idle' | 'disabled'
  /** The inputs that it waits for. */
  readonly waitsFor: readonly string[]
  readonly rules: readonly {
    readonly components: readonly string[]
    readonly resources: readonly string[]
  }[]
  /** Decisions on objects, each time that one is shown; watches share those on an event. */
  readonly edited: number
  readonly withheld: number
  readonly failed: number
  /** In milliseconds since the epoch; the log has the message. */
  readonly lastFailedAt?: number
}

type DecisionCounts = Pick<FilterStatus, 'edited' | 'withheld' | 'failed' | 'lastFailedAt'>

/** The filters that the live configuration enables; their failures go to log and metrics. */
export class EnabledFilters extends Filters {
  readonly #metrics: HubMetrics
  #builtIn: readonly FilterDefinition[]
  #live: LiveConfig
  #own: readonly FilterDefinition[]
  readonly #counts = new Map<string, DecisionCounts>()

  /** `own`: the filters of modules. They follow the built-in ones; none has the name of another. */
  constructor({ config, metrics, log }: HubContext, own: readonly FilterDefinition[]) {
    const known = {
      ...unknownInputs,
      nodeName: config.nodeName,
      propagation: config.hostNetworkPropagation,
    }
    super([], known, {
      warn: (message) => log.warn(message),
      onDecision: (filter, decision, err) => {
        const counts = this.#counts.get(filter) ?? noDecisions
        const isFailure = decision === 'failed'
        const lastFailedAt = isFailure && { lastFailedAt: now() }
        this.#counts.set(filter, { ...counts, [decision]: counts[decision] + 1, ...lastFailedAt })
        if (!isFailure) return metrics.filterDecisions.add({ filter, result: decision })
        metrics.filterErrors.add({ filter })
        log.error({ filter, err }, 'a filter failed')
      },
    })
    this.#live = config
    this.#metrics = metrics
    this.#builtIn = allFilters(config.hostNetworkPropagation)
    this.#own = own
    this.#enable()
  }

  /** All filters in order, those that are disabled last. */
  statuses(): readonly FilterStatus[] {
    const active = this.all
    const names = new Set(active.map(({ definition }) => definition.name))
    const disabled = [...this.#builtIn, ...this.#own].filter(({ name }) => !names.has(name))
    return [
      ...active.map(({ definition, missing, filter }) => {
        const state = missing.length > 0 ? 'waiting' : filter ? 'acting' : 'idle'
        return this.#statusOf(definition, state, missing)
      }),
      ...disabled.map((definition) => this.#statusOf(definition, 'disabled', [])),
    ]
  }

  #statusOf(
    { name, rules }: FilterDefinition,
    state: FilterStatus['state'],
    waitsFor: readonly string[],
  ): FilterStatus {
    return {
      name,
      state,
      waitsFor,
      rules: rules.map(({ components, group, resources }) => ({
        components,
        resources: resources.map((resource) => qualifiedResource({ group, resource })),
      })),
      ...(this.#counts.get(name) ?? noDecisions),
    }
  }

  /** A line for `/readyz?verbose` for each filter that has failed since the hub started. */
  verboseLines(): string[] {
    return [...this.#counts].flatMap(([filter, { failed, lastFailedAt = 0 }]) =>
      failed === 0
        ? []
        : `[ ]filter ${filter} has failed at ${failed} objects, last at ${new Date(lastFailedAt).toISOString()}: the log has why`,
    )
  }

  /** The names of the filters of modules. */
  get ownNames(): readonly string[] {
    return this.#own.map(({ name }) => name)
  }

  /** Without `own` the filters of modules stay. */
  reconfigure(next: LiveConfig, own: readonly FilterDefinition[] | undefined): void {
    const { hostNetworkPropagation: propagation } = next
    if (propagation !== this.#live.hostNetworkPropagation) this.#builtIn = allFilters(propagation)
    this.#own = own ?? this.#own
    this.#live = next
    this.#enable()
    this.setInputs({ propagation })
  }

  /** The filters that the live configuration enables act from now on; their counters begin at 0. */
  #enable(): void {
    const definitions = enabled(this.#live, [...this.#builtIn, ...this.#own])
    const { filterErrors, filterDecisions } = this.#metrics
    for (const { name: filter } of definitions) {
      filterErrors.add({ filter }, 0)
      for (const result of ['withheld', 'edited']) filterDecisions.add({ filter, result }, 0)
    }
    this.setDefinitions(definitions)
  }
}

const noDecisions: DecisionCounts = { edited: 0, withheld: 0, failed: 0 }

/** Logs the effects of changed filters on watches. */
export const loggingExpired =
  (log: Logger): FilterParts['onExpired'] =>
  ({ component, gvr }, why) =>
    log.info({ component, resource: qualifiedResource(gvr), why }, 'a client has to list again')

/** A filter that has to stay consistent with earlier answers is always enabled. */
const enabled = (
  { filters }: LiveConfig,
  all: readonly FilterDefinition[],
): readonly FilterDefinition[] =>
  all.filter(
    ({ name, actsWhenDisabled }) =>
      actsWhenDisabled ??
      (filters.enabled && !filters.disabled.has('*') && !filters.disabled.has(name)),
  )

/** The filters of these files, or all mistakes where they cannot be used. */
export const loadModules = (files: readonly string[]): Promise<LoadedFilters> =>
  loadFilters(files, filterNames)

/** The filters of `--filter-module`. Throws where they cannot be used. */
export async function filtersOfModules({
  filters,
}: LiveConfig): Promise<readonly FilterDefinition[]> {
  const loaded = await loadModules(filters.modules)
  if ('mistakes' in loaded) throw new UnusableFilters(loaded.mistakes.join('; '))
  return loaded.filters
}

class UnusableFilters extends Error {
  readonly code = 'UNUSABLE_FILTERS'
}
