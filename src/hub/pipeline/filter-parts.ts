import type { FilterChain } from '../filter/chain.ts'
import type { Shown } from '../filter/shown.ts'
import type { ObjectStore } from '../store/store.ts'
import type { FilterChangeHooks } from './filtered-watch.ts'

/** What the layer of filters needs. */
export interface FilterParts {
  readonly filters: FilterChain
  readonly shown: Shown
  /**
   * Where whole objects are looked up of which only a part is shown; absent: such parts are not
   * judged.
   */
  readonly store?: ObjectStore
  readonly hooks: FilterChangeHooks
}
