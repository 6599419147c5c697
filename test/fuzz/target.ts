import type { Random } from './random.ts'

/** Something that is given hostile input. */
export interface Target extends AsyncDisposable {
  readonly name: string
  /**
   * One input. Says whether it was taken; throws a `Finding` where the answer is wrong, and what
   * the code throws that it should not.
   */
  round(random: Random): Outcome | Promise<Outcome>
}

export type Outcome = 'taken' | 'refused'

/** Opens a target; what it needs is made then, and is gone when it is disposed of. */
export interface Opening {
  readonly name: string
  /**
   * After so many rounds what is kept for good is there: code is compiled, and caches that are
   * bounded are full. Default 200.
   */
  readonly warmRounds?: number
  open(): Target | Promise<Target>
}

/** The code under test did what it must not. */
export class Finding extends Error {
  readonly code = 'FINDING'
  /** The input, to be kept in the corpus. */
  readonly input: Buffer
  constructor(message: string, input: Buffer, cause?: unknown) {
    super(message, { cause })
    this.input = input
  }
}

/** A target without anything to open. */
export const pure = (name: string, round: Target['round']): Opening => ({
  name,
  open: () => ({ name, round, [Symbol.asyncDispose]: () => Promise.resolve() }),
})
