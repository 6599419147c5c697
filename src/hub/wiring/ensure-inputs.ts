import type { EnsureInputs } from '../pipeline/resumed-watch.ts'
import type { EnabledFilters } from './enabled-filters.ts'
import type { ReachableAddress } from './hub-address.ts'
import type { FilterInputs } from './filter-inputs.ts'

interface LearnParts {
  readonly filters: Pick<EnabledFilters, 'needsOf'>
  readonly inputs: Pick<FilterInputs, 'ensure'>
  readonly hubAddress: Pick<ReachableAddress, 'firstProbe'>
}

/**
 * Requests the inputs that the filters of an exchange need, and waits for those only.
 */
export const ensureInputsOf =
  ({ filters, inputs, hubAddress }: LearnParts): EnsureInputs =>
  (exchange) => {
    const needs = filters.needsOf(exchange)
    const learned = inputs.ensure(needs)
    // The first pods must be directed to the same address as later ones.
    const probed = needs.has('hubAddress') ? hubAddress.firstProbe : undefined
    if (learned && probed) return Promise.all([learned, probed]).then(() => undefined)
    return learned ?? probed
  }
