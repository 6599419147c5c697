import type { Logger } from 'pino'
import { filterNames } from '../../config/filter-names.ts'
import type { LiveConfig } from '../../config/hub-config.ts'
import type { FilterDefinition } from '../filter/filter.ts'
import { followFilters, type FilterFollower } from '../filter/own/follow.ts'
import { loadFilters, type LoadedFilters } from '../filter/own/load.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { EnabledFilters } from './enabled-filters.ts'
import type { Health } from './health.ts'

/** How often the files are checked for changes. */
const lookMs = 5_000

/** Loads the filters of these files; returns all mistakes where they cannot be used. */
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

interface ModuleFollowerParts {
  readonly filters: EnabledFilters
  readonly health: Health
  readonly metrics: HubMetrics
  readonly log: Logger
}

/** Watches the files of `--filter-module`; `first` are the filters in force. */
export const followModules = (
  live: LiveConfig,
  first: readonly FilterDefinition[],
  { filters, health, metrics, log }: ModuleFollowerParts,
): FilterFollower =>
  followFilters(live.filters.modules, first, {
    intervalMs: lookMs,
    load: loadModules,
    onLoaded(loaded) {
      filters.modules(loaded)
      health.filtersLoaded()
      metrics.filterReloads.add({ result: 'success' })
      log.info(
        { filters: loaded.map(({ name }) => name) },
        'the filters of --filter-module have changed',
      )
    },
    onSame: () => health.filtersLoaded(),
    onUnusable(mistakes) {
      health.filtersUnusable(mistakes)
      metrics.filterReloads.add({ result: 'failure' })
      log.error({ mistakes }, 'filters of --filter-module cannot be used; the last good ones stay')
    },
  })
