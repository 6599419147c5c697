import { lruCache } from '../../../base/lru-cache.ts'
import { elapsed, now } from '../../../base/clock.ts'
import { StateFile, storedEntries } from '../../../base/state-file.ts'
import type { GVR } from '../../../api/kube/gvk.ts'
import type { Identity } from '../../../api/request/identity.ts'

/** How long a verdict counts without another review while the hub is online. */
const allowedForMs = 5 * 60_000
const refusedForMs = 30_000

/** The hub retries a review without a verdict after so long. */
const retryMs = 5_000

/** More than the number of a node's accounts times their shared collections. */
const mostVerdicts = 4_096

interface ReviewResult {
  readonly allowed: boolean
  /** When an API server gave it, in milliseconds since the epoch. */
  readonly at: number
}

/** Makes a review; `undefined` where it gave no verdict. */
type Review = () => Promise<boolean | undefined>

interface AccessReviewHooks {
  /** Called after each review. */
  readonly onReviewed: (verdict: boolean | undefined) => void
  /** The file could not be written. */
  readonly onFailure: (cause: unknown) => void
}

/**
 * Which identities may list and watch whole collections, by the last access reviews. A verdict is
 * on the disk, in `file`, before it takes effect, and stays valid while the hub is offline. The
 * file has identities, of a token no more than its keyed hash. Disposing waits until it is written.
 */
export class AccessReviews implements AsyncDisposable {
  readonly #file: StateFile
  readonly #hooks: AccessReviewHooks
  readonly #verdicts = lruCache<string, ReviewResult>(mostVerdicts)
  /** Verdicts that are not on the disk yet, and have no effect until they are. */
  readonly #unwritten = new Map<string, ReviewResult>()
  readonly #running = new Map<string, Promise<boolean | undefined>>()
  /** Of these an API server has refused something since: a yes may be the older decision. */
  readonly #overtaken = new Set<string>()
  /** When a review gave no verdict, by the monotonic clock. */
  readonly #unanswered = lruCache<string, number>(mostVerdicts)

  constructor(file: string, hooks: AccessReviewHooks) {
    // Least recently used first, so that loading restores the order.
    this.#file = new StateFile(file, () =>
      JSON.stringify([...this.#verdicts.rentries(), ...this.#unwritten]),
    )
    this.#hooks = hooks
    // Without the file every review is made again.
    for (const [key, verdict] of storedEntries(file, isEntry)) this.#verdicts.set(key, verdict)
  }

  /** The last verdict, whatever its age: for use while the hub is offline. */
  last(who: Identity, gvr: GVR): boolean | undefined {
    return this.#verdicts.get(keyOf(who, gvr))?.allowed
  }

  /**
   * An API server has refused the resource, in whichever version, to the identities that begin so:
   * what their last verdicts allowed no longer counts. Resolves when that is on the disk.
   */
  async refused(prefix: string, { group, resource }: Omit<GVR, 'version'>): Promise<void> {
    const begin = beginOfKey(prefix)
    const isAffected = (key: string): boolean => {
      if (!key.startsWith(begin)) return false
      const of = gvrOf(key)
      return of.group === group && of.resource === resource
    }
    for (const key of this.#running.keys()) if (isAffected(key)) this.#overtaken.add(key)
    const allowed = [...this.#verdicts].filter(([key, { allowed }]) => allowed && isAffected(key))
    await Promise.all(allowed.map(([key]) => this.#set(key, { allowed: false, at: now() })))
  }

  /**
   * The current verdict: the last one while it is fresh, else that of `ask`. Concurrent callers
   * share one review.
   */
  async of(who: Identity, gvr: GVR, ask: Review): Promise<boolean | undefined> {
    const key = keyOf(who, gvr)
    const verdict = this.#verdicts.get(key)
    if (verdict && isFresh(verdict)) return verdict.allowed
    const silent = this.#unanswered.get(key)
    if (silent !== undefined && elapsed() - silent < retryMs) return undefined
    return this.#running.get(key) ?? this.#start(key, ask)
  }

  #start(key: string, ask: Review): Promise<boolean | undefined> {
    const asking = this.#review(key, ask).finally(() => {
      this.#running.delete(key)
      this.#overtaken.delete(key)
    })
    this.#running.set(key, asking)
    return asking
  }

  async #review(key: string, ask: Review): Promise<boolean | undefined> {
    const allowed = await ask()
    this.#hooks.onReviewed(allowed)
    const isDenied = (): boolean => allowed === true && this.#overtaken.has(key)
    if (allowed === undefined || isDenied()) {
      this.#unanswered.set(key, elapsed())
      return undefined
    }
    await this.#set(key, { allowed, at: now() })
    if (!isDenied()) return allowed
    await this.#set(key, { allowed: false, at: now() })
    return false
  }

  async #set(key: string, verdict: ReviewResult): Promise<void> {
    // The answers that a verdict allows must stay allowed after a crash. A verdict that only
    // repeats the last one is not worth a write.
    if (verdict.allowed !== this.#verdicts.get(key)?.allowed) await this.#write(key, verdict)
    this.#unanswered.delete(key)
    this.#verdicts.set(key, verdict)
    this.#unwritten.delete(key)
  }

  /** A verdict counts even if the write fails: the API server has given it. */
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
  // After the clock was set back a verdict may date from the future.
  return age >= 0 && age < (allowed ? allowedForMs : refusedForMs)
}

const keyOf = (who: Identity, { group, version, resource }: GVR): string =>
  JSON.stringify([who, group, version, resource])

/** Of the keys of all identities that begin so. */
const beginOfKey = (prefix: string): string => JSON.stringify([prefix]).slice(0, -2)

function gvrOf(key: string): GVR {
  const [, group, version, resource] = JSON.parse(key) as [string, string, string, string]
  return { group, version, resource }
}

function isEntry(entry: unknown): entry is [string, ReviewResult] {
  if (!Array.isArray(entry) || typeof entry[0] !== 'string') return false
  const { allowed, at } = (entry[1] ?? {}) as Partial<ReviewResult>
  return typeof allowed === 'boolean' && typeof at === 'number'
}
