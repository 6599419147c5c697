import { lruCache } from '../../../base/lru-cache.ts'
import { elapsed, now } from '../../../base/clock.ts'
import { StateFile, storedEntries } from '../../../base/state-file.ts'
import type { GVR } from '../../../api/kube/gvk.ts'
import type { Identity } from '../../../api/request/identity.ts'

/** How long a verdict is believed without asking again, while an API server can be asked. */
const allowedForMs = 5 * 60_000
const refusedForMs = 30_000

/** How soon one that did not give a verdict is asked again. */
const retryMs = 5_000

/** More than the accounts of a node's pods have collections in common. */
const mostVerdicts = 4_096

interface ReviewResult {
  readonly allowed: boolean
  /** When an API server gave it, in milliseconds since the epoch. */
  readonly at: number
}

/** Asks an API server; `undefined` where it gave no verdict. */
export type Review = () => Promise<boolean | undefined>

export interface AccessReviewHooks {
  /** An API server was asked. */
  readonly onReviewed: (verdict: boolean | undefined) => void
  /** The file could not be written. */
  readonly onFailure: (cause: unknown) => void
}

/**
 * Who may list and watch whole collections, as API servers last said, kept in `file` for when none
 * can be asked: on the disk before anybody acts on it. The file names identities, of a token no
 * more than its keyed hash. Disposing waits until what was said is written.
 */
export class AccessReviews implements AsyncDisposable {
  readonly #file: StateFile
  readonly #hooks: AccessReviewHooks
  readonly #verdicts = lruCache<string, ReviewResult>(mostVerdicts)
  /** Verdicts that are not on the disk yet, and do not count until they are. */
  readonly #unwritten = new Map<string, ReviewResult>()
  readonly #running = new Map<string, Promise<boolean | undefined>>()
  /** When an API server gave no verdict, by the clock that never goes back. */
  readonly #unanswered = lruCache<string, number>(mostVerdicts)

  constructor(file: string, hooks: AccessReviewHooks) {
    // Least used first, which is the order in which they are to be set again.
    this.#file = new StateFile(file, () =>
      JSON.stringify([...this.#verdicts.rentries(), ...this.#unwritten]),
    )
    this.#hooks = hooks
    // Without it API servers are asked anew.
    for (const [key, verdict] of storedEntries(file, isEntry)) this.#verdicts.set(key, verdict)
  }

  /** The last verdict, however old: for when no API server can be asked. */
  last(who: Identity, gvr: GVR): boolean | undefined {
    return this.#verdicts.get(keyOf(who, gvr))?.allowed
  }

  /**
   * The verdict in force: the last one where it is young enough, else what `ask` finds. Asked for
   * by many, it is found once.
   */
  async of(who: Identity, gvr: GVR, ask: Review): Promise<boolean | undefined> {
    const key = keyOf(who, gvr)
    const verdict = this.#verdicts.get(key)
    if (verdict && isFresh(verdict)) return verdict.allowed
    const silent = this.#unanswered.get(key)
    if (silent !== undefined && elapsed() - silent < retryMs) return undefined
    const asking = this.#running.get(key) ?? this.#start(key, ask)
    return asking
  }

  #start(key: string, ask: Review): Promise<boolean | undefined> {
    const asking = this.#review(key, ask).finally(() => this.#running.delete(key))
    this.#running.set(key, asking)
    return asking
  }

  async #review(key: string, ask: Review): Promise<boolean | undefined> {
    const allowed = await ask()
    this.#hooks.onReviewed(allowed)
    if (allowed === undefined) this.#unanswered.set(key, elapsed())
    else await this.#set(key, { allowed, at: now() })
    return allowed
  }

  async #set(key: string, verdict: ReviewResult): Promise<void> {
    // What is shown because of it has to be shown again after a crash. That it was said again is
    // not worth a write.
    if (verdict.allowed !== this.#verdicts.get(key)?.allowed) await this.#write(key, verdict)
    this.#unanswered.delete(key)
    this.#verdicts.set(key, verdict)
    this.#unwritten.delete(key)
  }

  /** A verdict that could not be written counts all the same: the API server has given it. */
  async #write(key: string, verdict: ReviewResult): Promise<void> {
    this.#unwritten.set(key, verdict)
    try {
      await this.#file.write()
    } catch (error) {
      this.#hooks.onFailure(error)
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }
}

function isFresh({ allowed, at }: ReviewResult): boolean {
  const age = now() - at
  // A clock that was set back makes a verdict look as if it were still to come.
  return age >= 0 && age < (allowed ? allowedForMs : refusedForMs)
}

const keyOf = (who: Identity, { group, version, resource }: GVR): string =>
  JSON.stringify([who, group, version, resource])

function isEntry(entry: unknown): entry is [string, ReviewResult] {
  if (!Array.isArray(entry) || typeof entry[0] !== 'string') return false
  const { allowed, at } = (entry[1] ?? {}) as Partial<ReviewResult>
  return typeof allowed === 'boolean' && typeof at === 'number'
}
