import type { EnsureInputs } from '../pipeline/filter-inputs.ts'
import type { EnabledFilters } from './filters.ts'
import type { ReachableAddress } from './hub-address.ts'
import type { FilterInputs } from './inputs.ts'

/** Who tells what filters need, and who tells what they know. */
interface LearnParts {
  readonly filters: Pick<EnabledFilters, 'needsOf'>
  readonly inputs: Pick<FilterInputs, 'ensure'>
  readonly hubAddress: Pick<ReachableAddress, 'firstProbe'>
}

/**
 * Asks for what the filters of an exchange need to know, and waits for it: for nothing that they do
 * not need.
 */
export const ensureInputsOf =
  ({ filters, inputs, hubAddress }: LearnParts): EnsureInputs =>
  (exchange) => {
    const needs = filters.needsOf(exchange)
    const learned = inputs.ensure(needs)
    // The first to ask are not to be led elsewhere than those who ask a moment later.
    const judged = needs.has('hubAddress') ? hubAddress.firstProbe : undefined
    if (!learned || !judged) return learned ?? judged
    return Promise.all([learned, judged]).then(() => undefined)
  }
