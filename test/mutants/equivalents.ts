/**
 * Mutants that no test can tell from the hub as it is, each with the reason. They are found by their text, so that they last when lines
 * move.
 */
import type { Mutant } from './places.ts'

interface Equivalent extends Pick<Mutant, 'path' | 'was' | 'becomes'> {
  readonly reason: string
}

const equivalents: readonly Equivalent[] = []

/** Why nothing can tell this mutant, if so. */
export const equivalentBecause = (mutant: Mutant): string | undefined =>
  equivalents.find(
    ({ path, was, becomes }) =>
      path === mutant.path && was === mutant.was && becomes === mutant.becomes,
  )?.reason
