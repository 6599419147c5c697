/**
 * Mutants that no test can tell from the hub as it is, each with the reason. They are found by
 * their line's text, so that they last when lines move.
 */
import type { Mutant } from './places.ts'

interface Equivalent extends Pick<Mutant, 'path' | 'kind' | 'on' | 'was'> {
  readonly reason: string
}

const equivalents: readonly Equivalent[] = [
  {
    path: 'src/api/codec/protobuf/message/encode.ts',
    kind: 'no-call',
    on: 'descending.set(schema, sorted)',
    was: 'descending.set(schema, sorted)',
    reason: 'it is only remembered, and otherwise sorted again',
  },
]

const is = (mutant: Mutant, { path, kind, on, was }: Equivalent): boolean =>
  mutant.path === path && mutant.kind === kind && mutant.on === on && mutant.was === was

/** Why nothing can tell this mutant, if so. */
export const equivalentBecause = (mutant: Mutant): string | undefined =>
  equivalents.find((each) => is(mutant, each))?.reason

/** Those that no mutant of the sources is any more. */
export const stale = (mutants: readonly Mutant[]): string[] =>
  equivalents
    .filter((each) => !mutants.some((mutant) => is(mutant, each)))
    .map(({ path, on }) => `${path}: ${on}`)
