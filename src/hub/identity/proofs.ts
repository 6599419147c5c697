import { lastUsed } from '../../base/last-used.ts'
import { after } from '../../base/clock.ts'
import { KeptFile, keptEntries } from '../../base/kept-file.ts'

/**
 * Whether API servers have accepted or refused a token; `confirmed`: accepted as that of the
 * service account that it names. An API server may accept a token for somebody else than the token
 * says: it can have several authenticators, and some take whatever they know.
 */
export type Verdict = (typeof verdicts)[number]

const verdicts = ['refused', 'confirmed', 'accepted'] as const

/**
 * More tokens than a node's pods have in an hour. Of refused ones as many again, so that no refusal
 * makes an acceptance forgotten.
 */
export const mostTokens = 4_096

/** Verdicts that come within this time are written together. */
const writeMs = 50

/**
 * The verdicts of API servers on the tokens used last, by a keyed hash of each token, kept in
 * `file` for when no API server can be asked. The file reveals nothing of a token. `onFailure` is
 * called when it could not be written. Disposing waits until all is.
 */
export class Proofs implements AsyncDisposable {
  readonly #file: KeptFile
  readonly #onFailure: (cause: unknown) => void
  readonly #verdicts = {
    accepted: lastUsed<string, true>(mostTokens),
    confirmed: lastUsed<string, true>(mostTokens),
    refused: lastUsed<string, true>(mostTokens),
  }
  #writing: Disposable | undefined

  constructor(file: string, onFailure: (cause: unknown) => void) {
    // Least used first, which is the order in which they are to be set again.
    this.#file = new KeptFile(file, () => JSON.stringify(this.#entries()))
    this.#onFailure = onFailure
    // Without it every token is proved again as it is used.
    for (const [hash, verdict] of keptEntries(file, isEntry))
      this.#verdicts[verdict].set(hash, true)
  }

  of(hash: string): Verdict | undefined {
    return verdicts.find((verdict) => this.#verdicts[verdict].get(hash))
  }

  accept(hash: string): void {
    if (this.of(hash) !== 'confirmed') this.#set(hash, 'accepted')
  }

  confirm(hash: string): void {
    this.#set(hash, 'confirmed')
  }

  /**
   * A refusal is worth storing only where it overrules something: an earlier verdict or, with
   * `remember`, a genuine signature.
   */
  refuse(hash: string, remember: boolean): void {
    if (remember || this.of(hash) !== undefined) this.#set(hash, 'refused')
  }

  #set(hash: string, verdict: Verdict): void {
    const before = this.of(hash)
    if (before === verdict) return
    if (before) this.#verdicts[before].delete(hash)
    this.#verdicts[verdict].set(hash, true)
    this.#writing ??= after(writeMs, () => this.#write())
  }

  #entries(): readonly (readonly [hash: string, verdict: Verdict])[] {
    return verdicts.flatMap((verdict) =>
      [...this.#verdicts[verdict].rkeys()].map((hash) => [hash, verdict] as const),
    )
  }

  #write(): void {
    this.#writing = undefined
    this.#file.write().catch(this.#onFailure)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#writing?.[Symbol.dispose]()
    if (this.#writing) this.#write()
    await this.#file[Symbol.asyncDispose]()
  }
}

const isEntry = (entry: unknown): entry is [string, Verdict] =>
  Array.isArray(entry) && typeof entry[0] === 'string' && verdicts.includes(entry[1] as Verdict)
