import type { FilterChains } from '../filter/chain.ts'
import type { ChainStateHistory } from '../filter/chain-state-history.ts'
import type { ObjectStore } from '../store/store.ts'
import type { FilterChangeHooks } from './filtered-watch.ts'

/** What the layer of filters needs. */
export interface FilterParts {
  readonly filters: FilterChains
  readonly shown: ChainStateHistory
  /**
   * Where whole objects are looked up of which only a part is shown; absent: such parts are not
   * judged.
   */
  readonly store?: ObjectStore
  readonly hooks: FilterChangeHooks
}
