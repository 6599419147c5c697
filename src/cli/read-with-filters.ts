import { unknownFilters } from '../config/checks.ts'
import {
  readConfig,
  type ConfigSources,
  type UnusableConfig,
  type UsableConfig,
} from '../config/config.ts'
import { filterNames } from '../config/filter-names.ts'
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
  const { loadModules } = await import('../hub/wiring/enabled-filters.ts')
  const loaded = await loadModules(files)
  if ('mistakes' in loaded) {
    const wrong = loaded.mistakes.map((mistake) => `--filter-module: ${mistake}`)
    const before = 'mistakes' in result ? result.mistakes : []
    return { mistakes: [...before, ...wrong], filterModules: files }
  }
  if ('mistakes' in result) return result
  const known = [...filterNames, ...loaded.filters.map(({ name }) => name)]
  const wrong = unknownFilters(result.config.filters.disabled, known)
  if (wrong.length > 0) return { mistakes: wrong, filterModules: files }
  const revision = loaded.filters.map((each) => each.revision).join()
  return { ...result, filters: loaded.filters, revision }
}
