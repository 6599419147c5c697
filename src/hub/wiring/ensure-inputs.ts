import type { EnsureInputs } from '../pipeline/pipeline.ts'
import type { EnabledFilters } from './enabled-filters.ts'
import type { ReachableAddress } from './hub-address.ts'
import type { FilterInputs } from './filter-inputs.ts'
import type { NodePods } from './node-pods.ts'

interface LearnParts {
  readonly filters: Pick<EnabledFilters, 'needsOf'>
  readonly inputs: Pick<FilterInputs, 'ensure'>
  readonly hubAddress: Pick<ReachableAddress, 'firstProbe'>
  readonly nodePods: Pick<NodePods, 'ensure'>
}

/**
 * Requests the inputs that the filters of an exchange need, and the pods that the port ledger
 * needs, and waits for those only.
 */
export const ensureInputsOf =
  ({ filters, inputs, hubAddress, nodePods }: LearnParts): EnsureInputs =>
  (exchange) => {
    const needs = filters.needsOf(exchange)
    const learned = inputs.ensure(needs)
    // The first pods must be directed to the same address as later ones.
    const probed = needs.has('hubAddress') ? hubAddress.firstProbe : undefined
    const encoding = exchange.representations[0]?.encoding ?? 'json'
    const listed = needs.has('propagatedLater') ? nodePods.ensure(encoding) : undefined
    const awaited = [learned, probed, listed].filter((each) => each !== undefined)
    return awaited.length < 2 ? awaited[0] : Promise.all(awaited).then(() => undefined)
  }
