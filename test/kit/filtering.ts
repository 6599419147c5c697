import type { FilterChain } from '../../src/hub/filter/chain.ts'
import { Shown } from '../../src/hub/filter/shown.ts'
import type { FilterParts } from '../../src/hub/pipeline/filter-parts.ts'

/** What the layer of filters needs; what clients were shown is forgotten with the process. */
export const filteringOf = (filters: FilterChain): FilterParts => ({
  filters,
  shown: new Shown(),
  hooks: { onDifference: () => undefined, onExpired: () => undefined },
})
