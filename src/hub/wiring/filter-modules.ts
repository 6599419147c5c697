import { filterNames } from '../../config/filter-names.ts'
import type { LiveConfig } from '../../config/hub-config.ts'
import type { FilterDefinition } from '../filter/filter.ts'
import { loadFilters, type LoadedFilters } from '../filter/own/load.ts'

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
