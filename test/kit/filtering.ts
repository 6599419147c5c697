import type { FilterChains } from '../../src/hub/filter/chain.ts'
import { ShownStates } from '../../src/hub/filter/shown-states.ts'
import type { FilterParts } from '../../src/hub/pipeline/resumed-watch.ts'

/**
 * What the layer of filters needs, over a store without objects; what clients were shown is
 * forgotten with the process.
 */
export const filteringOf = (filters: FilterChains): FilterParts => ({
  ensureInputs: () => undefined,
  filters,
  shown: new ShownStates(),
  store: { get: () => undefined, copyOf: (key) => key },
  hooks: { onDifference: () => undefined, onExpired: () => undefined },
})
