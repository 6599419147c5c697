import type { Learn } from '../pipeline/inputs.ts'
import type { EnabledFilters } from './filters.ts'
import type { ReachableAddress } from './hub-address.ts'
import type { FilterInputs } from './inputs.ts'

/** Who tells what filters need, and who tells what they know. */
interface LearnParts {
  readonly filters: Pick<EnabledFilters, 'needsOf'>
  readonly inputs: Pick<FilterInputs, 'learn'>
  readonly hubAddress: Pick<ReachableAddress, 'judged'>
}

/**
 * Asks for what the filters of an exchange need to know, and waits for it: for nothing that they do
 * not need.
 */
export const learnOf =
  ({ filters, inputs, hubAddress }: LearnParts): Learn =>
  (exchange) => {
    const needs = filters.needsOf(exchange)
    const learned = inputs.learn(needs)
    // The first to ask are not to be led elsewhere than those who ask a moment later.
    const judged = needs.has('hubAddress') ? hubAddress.judged : undefined
    if (!learned || !judged) return learned ?? judged
    return Promise.all([learned, judged]).then(() => undefined)
  }
