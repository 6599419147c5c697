import type { FilterDefinition } from '../src/hub/filter/filter.ts'
import type { Inputs } from '../src/hub/filter/inputs.ts'
import { discardcloudservice } from './discardcloudservice.ts'
import { forwardkubesvctraffic } from './forwardkubesvctraffic.ts'
import { inclusterconfig } from './inclusterconfig.ts'
import { hostnetworkpropagation } from './hostnetworkpropagation.ts'
import { masterservice } from './masterservice.ts'
import { nodeportisolation } from './nodeportisolation.ts'
import { serviceenvupdater } from './serviceenvupdater.ts'
import { servicetopology } from './servicetopology.ts'

/**
 * The filters of the hub, in the order in which they act: each gets the result of those before it.
 */
export const builtInFilters: readonly FilterDefinition[] = [
  // Filters that withhold come first: there is no point in editing an object that is withheld.
  discardcloudservice,
  nodeportisolation,
  // Before forwardkubesvctraffic: the hub's own endpoint is on no node of the topology, and must
  // stay.
  servicetopology,
  forwardkubesvctraffic,
  masterservice,
  inclusterconfig,
  serviceenvupdater,
]

/**
 * These and, last, the one that keeps pods on their network: it changes nothing that they read.
 * `propagation` is its mode.
 */
export const allFilters = (propagation: Inputs['propagation']): readonly FilterDefinition[] => [
  ...builtInFilters,
  hostnetworkpropagation(propagation),
]
