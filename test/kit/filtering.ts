import { ShownStates } from '../../src/hub/filter/shown-states.ts'
import type { FilterParts } from '../../src/hub/pipeline/filtered-watch.ts'

/**
 * What the layer of filters needs; what clients were shown is forgotten with the process.
 */
export const filteringOf = (filters: FilterParts['filters']): FilterParts => ({
  ensureInputs: () => undefined,
  filters,
  shown: new ShownStates(),
  onExpired: () => undefined,
})
