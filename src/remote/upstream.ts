import { after, elapsed, sleep } from '../base/clock.ts'
import type { Candidate, Standing } from './balance.ts'
import { TrackRecord, type TrackRules } from './track-record.ts'

/** How verdicts on an upstream are reached. */
export interface HealthRules extends Partial<TrackRules> {
  readonly intervalMs: number
  readonly timeoutMs: number
  /** How many probes in a row have to fail before a healthy upstream is unhealthy. */
  readonly failedRetry: number
  /** How many have to succeed before an unhealthy one is healthy. */
  readonly healthyThreshold: number
  /** How far apart probes that say the same have to be for each to count; absent: `closeMs`. */
  readonly gapMs?: number
}

/**
 * Resolves where the upstream says that it is ready; rejects with `NotReady` where it says anything else, with `NoWord` where it says
 * nothing in time, and with whatever it was where there is nobody.
 */
export type Probe = (origin: string, withinMs: number) => Promise<void>

/** An API server has answered a probe: that it is not ready, or that it will not say. */
export class NotReady extends Error {
  readonly code = 'NOT_READY'
}

/** A probe was not answered in its time. */
export class NoWord extends Error {
  readonly code = 'NO_WORD'
}

/** What one probe found. */
type Finding = 'healthy' | 'unready' | 'unhealthy'

export type Verdict = 'unknown' | Finding

/** The better ones are higher. */
const rank: Readonly<Record<Finding, number>> = { unhealthy: 0, unready: 1, healthy: 2 }

/** While a verdict is about to change, probes follow each other this closely. */
const closeMs = 500

/** What upstreams tell their surroundings. */
export interface UpstreamHooks {
  /** The verdict is another. */
  readonly onVerdict: (upstream: Upstream) => void
  /** Requests fail at it: it is not asked, while there is another, for so long. */
  readonly onEjected?: (upstream: Upstream, forMs: number) => void
}

/**
 * One kube-apiserver, and the verdict on it.
 *
 *   unknown -> healthy | unready | unhealthy     by the first probe
 *   any -> a worse one                           by `failedRetry` probes in a row that found it worse
 *   any -> a better one                          by `healthyThreshold` in a row that found it better
 *
 * `unready` is an API server that answers its probes, but not that it is ready; it is asked when there is no better one. Where the probes
 * of a row differ, the verdict changes to the nearest of what they found.
 *
 * Only probes decide. What requests meet with can bring the next probe forward; but many failed requests within a moment are one
 * failure, so a probe that says again what was said a moment ago is not counted again. And whoever speaks is not dead: a probe without
 * an answer counts for nothing if bytes of other answers came meanwhile. A thin link, or an API server under load, delays probes
 * first, and were they believed, all upstreams would be given up at once for being busy.
 */
export class Upstream implements Candidate {
  readonly origin: string
  readonly #probe: Probe
  #rules: HealthRules
  readonly #hooks: UpstreamHooks
  readonly #record: TrackRecord
  #verdict: Verdict = 'unknown'
  /** Probes in a row that found it better (positive) or worse (negative) than the verdict, and the nearest of what they found. */
  #streak = 0
  #nearest: Finding = 'unhealthy'
  #counted: Finding | undefined
  #countedAt = 0
  #tenure = new AbortController()
  #probing: Promise<boolean> | undefined
  #next: Disposable | undefined
  /** The time of the next probe has come. */
  #due = false
  #heardAt = -Infinity
  #lastError: Error | undefined
  #closed = false

  constructor(origin: string, probe: Probe, rules: HealthRules, hooks: UpstreamHooks) {
    this.origin = origin
    this.#probe = probe
    this.#rules = rules
    this.#hooks = hooks
    const { ejectMs = rules.intervalMs, warmUpMs = 3 * rules.intervalMs } = rules
    this.#record = new TrackRecord({ ejectMs, warmUpMs }, (forMs) => hooks.onEjected?.(this, forMs))
  }

  get verdict(): Verdict {
    return this.#verdict
  }

  /** Aborts when the upstream is no longer there: what hangs on a half-dead link ends. */
  get tenure(): AbortSignal {
    return this.#tenure.signal
  }

  get standing(): Standing {
    switch (this.#verdict) {
      case 'healthy':
        return this.#record.ejected ? 'ejected' : 'ready'
      case 'unready':
        return 'unready'
      case 'unknown':
      case 'unhealthy':
        return 'gone'
    }
  }

  get warmth(): number {
    return this.#record.warmth
  }

  /** How much longer it is ejected, or 0. */
  get ejectedForMs(): number {
    return this.#record.ejectedForMs
  }

  /** Why the last probe that did not succeed did not; `undefined` after one that did. */
  get lastError(): Error | undefined {
    return this.#lastError
  }

  /** Whether it has sent anything since `then`, by the clock of `elapsed`. */
  heardSince(then: number): boolean {
    return this.#heardAt >= then
  }

  /** Bytes of an answer have come. */
  heard(): void {
    this.#heardAt = elapsed()
  }

  /** A request was answered by it. */
  answered(): void {
    this.heard()
    this.#record.answered()
  }

  /** A request that went out at `began` was not; the next probe is now. */
  failed(began: number): void {
    this.#record.failed(began)
    void this.probe()
  }

  /** Other rules from the next probe on. */
  judgeBy(rules: HealthRules): void {
    this.#rules = rules
  }

  /** Probes now, or joins the probe under way. True where the upstream is there: it has answered, whether that counts or not. */
  probe(): Promise<boolean> {
    this.#probing ??= this.#run().finally(() => {
      this.#probing = undefined
    })
    return this.#probing
  }

  async #run(): Promise<boolean> {
    const began = elapsed()
    const found = await this.#probe(this.origin, this.#rules.timeoutMs).then(
      () => this.#found('healthy'),
      (error: Error) => this.#found(error instanceof NotReady ? 'unready' : 'unhealthy', error),
    )
    if (this.#closed) return found !== 'unhealthy'
    if (this.#lastError instanceof NoWord && this.heardSince(began)) {
      this.#again(this.#rules.intervalMs)
      return true
    }
    if (this.#counts(found)) this.#count(found)
    return found !== 'unhealthy'
  }

  #found(finding: Finding, error?: Error): Finding {
    this.#lastError = error
    return finding
  }

  #counts(found: Finding): boolean {
    const repeats = found === this.#counted
    return this.#due || !repeats || elapsed() - this.#countedAt >= (this.#rules.gapMs ?? closeMs)
  }

  #count(found: Finding): void {
    this.#counted = found
    this.#countedAt = elapsed()
    this.#judge(found)
    this.#again(this.#verdict === found ? this.#rules.intervalMs : closeMs)
  }

  #again(inMs: number): void {
    this.#next?.[Symbol.dispose]()
    this.#due = false
    if (this.#closed) return
    this.#next = after(inMs, () => {
      this.#due = true
      void this.probe()
    })
  }

  #judge(found: Finding): void {
    if (this.#verdict === 'unknown') return this.#turn(found)
    const step = rank[found] - rank[this.#verdict]
    if (step === 0 || step > 0 !== this.#streak > 0) this.#streak = 0
    if (step === 0) return
    const nearer = Math.abs(step) < Math.abs(rank[this.#nearest] - rank[this.#verdict])
    if (this.#streak === 0 || nearer) this.#nearest = found
    this.#streak += Math.sign(step)
    const { failedRetry, healthyThreshold } = this.#rules
    if (this.#streak <= -failedRetry || this.#streak >= healthyThreshold) this.#turn(this.#nearest)
  }

  #turn(verdict: Finding): void {
    const before = this.#verdict
    this.#verdict = verdict
    this.#streak = 0
    if (verdict === 'unhealthy') this.#tenure.abort(new TenureOver(this.origin, false))
    else if (before === 'unhealthy') this.#tenure = new AbortController()
    if (verdict === 'healthy' && before !== 'unknown') this.#record.begin()
    this.#hooks.onVerdict(this)
  }

  /** No longer of any concern: what hangs on it ends, and nothing is said of it any more. */
  close(): void {
    this.#closed = true
    this.#next?.[Symbol.dispose]()
    this.#tenure.abort(new TenureOver(this.origin, true))
  }
}

/** The reason of a tenure's signal. */
export class TenureOver extends Error {
  readonly code = 'TENURE_OVER'
  /** It has not failed: it is no longer to be asked. */
  readonly removed: boolean
  constructor(origin: string, removed: boolean) {
    super(removed ? `${origin} is no longer asked` : `${origin} has failed`)
    this.removed = removed
  }
}

/** Resolves to false where `upstream` does not answer a probe, nor say anything else, before `ms` have passed. */
export async function answersWithin(upstream: Upstream, ms: number): Promise<boolean> {
  const began = elapsed()
  const patience = new AbortController()
  try {
    return await Promise.race([
      upstream.probe(),
      sleep(ms, patience.signal).then(() => upstream.heardSince(began)),
    ])
  } finally {
    patience.abort()
  }
}
