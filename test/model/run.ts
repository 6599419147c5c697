import { after } from '../../src/base/clock.ts'
import { roundOf } from '../fuzz/random.ts'
import { Finding } from './finding.ts'
import { sequenceOf, type Sequence } from './operations.ts'
import { World } from './world.ts'

/** A sequence that went wrong: what it takes to see it again. */
export class FailedSequence extends Error {
  readonly code = 'FAILED_SEQUENCE'
  readonly sequence: Sequence
  readonly trace: readonly string[]
  constructor(sequence: Sequence, trace: readonly string[], cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.sequence = sequence
    this.trace = trace
  }
}

export interface RunOptions {
  /** Sequences whose hub is a process of its own, one in so many. */
  readonly childOnceIn?: number
  /** Rounds to run before the others, which begin with 0. */
  readonly first?: readonly number[]
  /** Which failures end the run; absent: all. */
  readonly counts?: (why: FailedSequence) => boolean
}

/** Nothing that is waited for takes longer, on a machine however busy. */
const stuckMs = 30_000

/** Throws a `FailedSequence`. */
export async function run(sequence: Sequence): Promise<void> {
  await using world = await World.start(sequence.setup)
  try {
    for (const operation of sequence.operations) {
      await unlessStuck(JSON.stringify(operation), world.do(operation))
    }
    await unlessStuck('the end', world.end())
  } catch (cause) {
    throw new FailedSequence(sequence, world.trace, cause)
  }
}

async function unlessStuck(what: string, doing: Promise<void>): Promise<void> {
  const { promise: stuck, reject } = Promise.withResolvers<never>()
  using _ = after(stuckMs, () => reject(new Finding(`stuck in ${what}`)))
  await Promise.race([doing, stuck])
}

/** The sequence that a seed and a round make. */
export const sequenceIn = (seed: number, round: number, childOnceIn?: number): Sequence =>
  sequenceOf(roundOf(seed, round), childOnceIn)

/**
 * Runs rounds, `lanes` of them concurrently since they mostly wait, until one fails or `goes`
 * returns false.
 */
export async function runRounds(
  seed: number,
  goes: (round: number) => boolean,
  lanes: number,
  { childOnceIn, first = [], counts = () => true }: RunOptions = {},
): Promise<{ readonly rounds: number; readonly failed?: { round: number; why: FailedSequence } }> {
  let next = 0
  let failed: { round: number; why: FailedSequence } | undefined
  const lane = async (): Promise<void> => {
    while (failed === undefined && goes(next)) {
      const nth = next++
      const round = first[nth] ?? nth - first.length
      try {
        await run(sequenceIn(seed, round, childOnceIn))
      } catch (why) {
        if (!(why instanceof FailedSequence)) throw why
        if (counts(why)) failed ??= { round, why }
      }
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return { rounds: next, ...(failed && { failed }) }
}

/** Removes operations as long as the rest of the sequence still fails. */
export async function shrink(failed: FailedSequence): Promise<FailedSequence> {
  let least = failed
  for (let size = Math.ceil(least.sequence.operations.length / 2); size >= 1;) {
    const smaller = await withoutSome(least, size)
    if (smaller) least = smaller
    else size = size === 1 ? 0 : Math.ceil(size / 2)
  }
  return least
}

/** How many shorter sequences are tried at a time: most of their time is waiting. */
const tried = 6

async function withoutSome(
  { sequence: { setup, operations } }: FailedSequence,
  size: number,
): Promise<FailedSequence | undefined> {
  for (let from = operations.length; from > 0; from -= size * tried) {
    const starts = Array.from({ length: tried }, (_, i) => from - size * (i + 1))
    const failures = await Promise.all(
      starts
        .filter((start) => start > -size)
        .map((start) => {
          const at = Math.max(0, start)
          return failureOf({ setup, operations: operations.toSpliced(at, start + size - at) })
        }),
    )
    const found = failures.find((failure) => failure !== undefined)
    if (found) return found
  }
  return undefined
}

async function failureOf(sequence: Sequence): Promise<FailedSequence | undefined> {
  try {
    await run(sequence)
    return undefined
  } catch (error) {
    if (error instanceof FailedSequence) return error
    throw error
  }
}

/** The failure, setup and trace, for debugging. */
export const report = ({ message, sequence, trace }: FailedSequence): string =>
  [message, JSON.stringify(sequence.setup), ...trace].join('\n')
