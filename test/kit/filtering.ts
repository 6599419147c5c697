import type { FilterChain } from '../../src/filter/chain.ts'
import { Shown } from '../../src/filter/shown.ts'
import type { FilterParts } from '../../src/pipeline/filter-parts.ts'

/** What the layer of filters needs; what clients were shown is forgotten with the process. */
export const filteringOf = (filters: FilterChain): FilterParts => ({
  filters,
  shown: new Shown(),
  hooks: { onDifference: () => undefined, onExpired: () => undefined },
})
