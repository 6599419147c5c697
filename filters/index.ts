import type { FilterDefinition } from '../src/hub/filter/filter.ts'
import type { NetworkVerdicts } from '../src/hub/filter/host-network/verdicts.ts'
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
 * The filters of the hub, in the order in which they act: each sees what those before it made of an
 * object.
 */
export const builtInFilters: readonly FilterDefinition[] = [
  // First what withholds: nobody has to change an object that is not shown.
  discardcloudservice,
  nodeportisolation,
  // Before forwardkubesvctraffic: the hub's own endpoint is on no node that topology knows, and
  // must stay.
  servicetopology,
  forwardkubesvctraffic,
  masterservice,
  inclusterconfig,
  serviceenvupdater,
]

/**
 * These and, after them, the one that keeps verdicts: it changes nothing that they look at.
 * `propagation` is its mode.
 */
export const allFilters = (
  verdicts: NetworkVerdicts,
  propagation: Inputs['propagation'],
): readonly FilterDefinition[] => [...builtInFilters, hostnetworkpropagation(verdicts, propagation)]
