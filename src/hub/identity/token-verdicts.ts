import { within } from '../../base/clock.ts'
import { lruCache } from '../../base/lru-cache.ts'
import { StateFile, storedEntries } from '../../base/state-file.ts'

/**
 * The verdict of API servers on a token. That one accepts it does not show that it is a token of
 * the service account that it names: an API server can have several authenticators, and one of them
 * may map the token to another user.
 */
export type TokenVerdict = (typeof verdicts)[number]

const verdicts = ['refused', 'accepted'] as const

/**
 * More tokens than a node's pods have in an hour. Refused tokens have a list of the same length of
 * their own, so that no refusal evicts an acceptance.
 */
export const mostTokens = 4_096

/**
 * How long the first answer to a token waits until the verdict on it is on the disk, so that a
 * crash does not take back what the answer shows: longer than a disk takes that does not hang.
 */
const patienceMs = 250

/**
 * The verdicts of API servers on the most recently used tokens, by a keyed hash of each token, kept
 * in `file` for use while no API server is reachable. The file reveals nothing of a token. What
 * stores a new verdict returns a promise that resolves once it is on the disk, could not be
 * written, for which `onFailure` is called, or after `patienceMs`; `undefined` where the verdict is
 * not new. Disposing waits for pending writes.
 */
export class TokenVerdicts implements AsyncDisposable {
  readonly #file: StateFile
  readonly #onFailure: (cause: unknown) => void
  readonly #verdicts = {
    accepted: lruCache<string, true>(mostTokens),
    refused: lruCache<string, true>(mostTokens),
  }

  constructor(file: string, onFailure: (cause: unknown) => void) {
    // Least recently used first, the order in which the entries have to be set again.
    this.#file = new StateFile(file, () => JSON.stringify(this.#entries()))
    this.#onFailure = onFailure
    // If the file is lost, each token is proved again at its next use.
    for (const [hash, verdict] of storedEntries(file, isEntry))
      this.#verdicts[verdict].set(hash, true)
  }

  of(hash: string): TokenVerdict | undefined {
    return verdicts.find((verdict) => this.#verdicts[verdict].get(hash))
  }

  accept(hash: string): Promise<void> | undefined {
    return this.#set(hash, 'accepted')
  }

  /**
   * Stores a refusal only where it overrules something: an earlier verdict or, with `remember`, a
   * genuine signature.
   */
  refuse(hash: string, remember: boolean): Promise<void> | undefined {
    return remember || this.of(hash) !== undefined ? this.#set(hash, 'refused') : undefined
  }

  #set(hash: string, verdict: TokenVerdict): Promise<void> | undefined {
    const before = this.of(hash)
    if (before === verdict) return undefined
    if (before) this.#verdicts[before].delete(hash)
    this.#verdicts[verdict].set(hash, true)
    return within(patienceMs, this.#file.write().catch(this.#onFailure))
  }

  #entries(): readonly (readonly [hash: string, verdict: TokenVerdict])[] {
    return verdicts.flatMap((verdict) =>
      [...this.#verdicts[verdict].rkeys()].map((hash) => [hash, verdict] as const),
    )
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }
}

const isEntry = (entry: unknown): entry is [string, TokenVerdict] =>
  Array.isArray(entry) &&
  typeof entry[0] === 'string' &&
  verdicts.includes(entry[1] as TokenVerdict)
