import type { FilterChain } from '../filter/chain.ts'
import type { Shown } from '../filter/shown.ts'
import type { OwedHooks } from './filtered-watch.ts'

/** What the layer of filters needs. */
export interface FilterParts {
  readonly filters: FilterChain
  readonly shown: Shown
  readonly hooks: OwedHooks
}
