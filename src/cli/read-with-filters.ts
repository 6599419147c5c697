import {
  readConfig,
  type ConfigSources,
  type HubConfig,
  type UnusableConfig,
  type UsableConfig,
} from '../config/config.ts'
import { filterNames } from '../config/filter-names.ts'
import { didYouMean } from '../config/suggestion.ts'
import type { FilterDefinition } from '../hub/filter/filter.ts'

/** A configuration that can be used, with the filters that its modules hold. */
export interface ConfigWithFilters extends UsableConfig {
  readonly filters: readonly FilterDefinition[]
}

/**
 * Reads the configuration and the filters it names. Loading a module runs it: only for who is about
 * to use them, or to say what would happen.
 */
export async function readWithFilters(
  sources: ConfigSources,
): Promise<ConfigWithFilters | UnusableConfig> {
  const result = readConfig(sources)
  const files = 'mistakes' in result ? result.filterModules : result.config.filters.modules
  if (files.length === 0) return 'mistakes' in result ? result : { ...result, filters: [] }
  // What filters are made of is not needed without any.
  const { loadModules } = await import('../hub/wiring/filter-modules.ts')
  const loaded = await loadModules(files)
  if ('mistakes' in loaded) {
    const wrong = loaded.mistakes.map((mistake) => `--filter-module: ${mistake}`)
    const before = 'mistakes' in result ? result.mistakes : []
    return { mistakes: [...before, ...wrong], filterModules: files }
  }
  if ('mistakes' in result) return result
  const wrong = unknownFilters(result.config, loaded.filters)
  if (wrong.length > 0) return { mistakes: wrong, filterModules: files }
  return { ...result, filters: loaded.filters }
}

/** Filters that are to be left out, and that neither the hub nor a module has. */
function unknownFilters(
  { filters: { disabled } }: HubConfig,
  loaded: readonly FilterDefinition[],
): string[] {
  const known: readonly string[] = [...filterNames, ...loaded.map(({ name }) => name)]
  return [...disabled]
    .filter((name) => name !== '*' && !known.includes(name))
    .map(
      (name) =>
        `--disabled-resource-filters: ${JSON.stringify(name)} is no filter${didYouMean(name, known)}`,
    )
}
