import type { FilterDefinition } from '../src/filter/filter.ts'
import { discardcloudservice } from './discardcloudservice.ts'
import { forwardkubesvctraffic } from './forwardkubesvctraffic.ts'
import { inclusterconfig } from './inclusterconfig.ts'
import { masterservice } from './masterservice.ts'
import { nodeportisolation } from './nodeportisolation.ts'
import { serviceenvupdater } from './serviceenvupdater.ts'
import { servicetopology } from './servicetopology.ts'

/** The filters of the hub, in the order in which they act: each sees what those before it made of an object. */
export const builtInFilters: readonly FilterDefinition[] = [
  // First what withholds: nobody has to change an object that is not shown.
  discardcloudservice,
  nodeportisolation,
  servicetopology,
  forwardkubesvctraffic,
  masterservice,
  inclusterconfig,
  serviceenvupdater,
]
