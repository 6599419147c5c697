import type { FilterChains } from '../filter/chain.ts'
import type { ChainStateHistory } from '../filter/chain-state-history.ts'
import type { ObjectStore } from '../store/store.ts'
import type { FilterChangeHooks } from './filtered-watch.ts'

export interface FilterParts {
  readonly filters: FilterChains
  readonly shown: ChainStateHistory
  /** Has the whole objects of which an answer contains only parts. */
  readonly store: Pick<ObjectStore, 'get'>
  readonly hooks: FilterChangeHooks
}
