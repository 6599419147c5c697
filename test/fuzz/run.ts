import { heldForGood } from '../kit/held-bytes.ts'
import { roundOf } from './random.ts'
import { Finding, type Opening } from './target.ts'

/** How a target did. */
export interface Report {
  readonly name: string
  readonly rounds: number
  readonly taken: number
  /**
   * Bytes the heap and what is held outside it (buffers) grew by between the warm round and the
   * last, after collecting.
   */
  readonly growth: number
}

/** A round that went wrong: what it takes to see it again. */
export class FailedRound extends Error {
  readonly code = 'FAILED_ROUND'
  readonly input: Buffer | undefined
  constructor(target: string, seed: number, round: number, cause: unknown) {
    const what = cause instanceof Error ? cause.message : String(cause)
    super(`${target}: ${what} (--target ${target} --seed ${seed} --round ${round})`, { cause })
    this.input = cause instanceof Finding ? cause.input : undefined
  }
}

/**
 * Gives a target inputs for as long as `goes` says so, and throws a `FailedRound` at the first that
 * goes wrong.
 */
export async function fuzz(
  opening: Opening,
  seed: number,
  goes: (round: number) => boolean,
  from = 0,
): Promise<Report> {
  using unseen = new Unseen()
  using _awake = new Awake()
  await using target = await opening.open()
  let taken = 0
  let round = from
  let early: number | undefined
  for (; goes(round); round++) {
    try {
      if ((await target.round(roundOf(seed, round))) === 'taken') taken++
      unseen.throwIfAny()
    } catch (error) {
      throw new FailedRound(target.name, seed, round, error)
    }
    if (round - from === (opening.warmRounds ?? 200)) early = await heldForGood()
    // A target without sockets would otherwise never let the process do anything else.
    if (round % 256 === 0) await new Promise(setImmediate)
  }
  const growth = early === undefined ? 0 : (await heldForGood(early + unremarkable)) - early
  return { name: target.name, rounds: round - from, taken, growth }
}

/** No reading of less growth is taken again: each is a collection of the whole heap. */
const unremarkable = 1024 * 1024

/** Keeps the process going, as the rest of a hub would: sockets that nobody reads do not. */
class Awake implements Disposable {
  readonly #timer: NodeJS.Timeout

  constructor() {
    this.#timer = setInterval(() => undefined, 1_000)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}

/** What nobody caught while it is there. */
class Unseen implements Disposable {
  #caught: unknown[] = []
  readonly #see = (cause: unknown): void => void this.#caught.push(cause)

  constructor() {
    process.on('unhandledRejection', this.#see)
    process.on('uncaughtException', this.#see)
    process.on('warning', this.#see)
  }

  throwIfAny(): void {
    const [cause] = this.#caught
    if (this.#caught.length > 0) throw new Error('it was not caught', { cause })
  }

  [Symbol.dispose](): void {
    process.off('unhandledRejection', this.#see)
    process.off('uncaughtException', this.#see)
    process.off('warning', this.#see)
  }
}
