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

/** A valid configuration with the filters of its modules. */
export interface ConfigWithFilters extends UsableConfig {
  readonly filters: readonly FilterDefinition[]
}

/**
 * Reads the configuration and its filter modules. Loading a module runs it: only for commands that
 * use filters or check them.
 */
export async function readWithFilters(
  sources: ConfigSources,
): Promise<ConfigWithFilters | UnusableConfig> {
  const result = readConfig(sources)
  const files = 'mistakes' in result ? result.filterModules : result.config.filters.modules
  if (files.length === 0) return 'mistakes' in result ? result : { ...result, filters: [] }
  // Without modules the loader is not needed.
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

/** Disabled filters that neither the hub nor a module has. */
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
