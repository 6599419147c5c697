import { after, elapsed, sleep } from '../base/clock.ts'

/** How verdicts on an upstream are reached. */
export interface HealthRules {
  readonly intervalMs: number
  readonly timeoutMs: number
  /** How many probes in a row have to fail before a healthy upstream is unhealthy. */
  readonly failedRetry: number
  /** How many have to succeed before an unhealthy one is healthy. */
  readonly healthyThreshold: number
  /** How far apart probes that say the same have to be for each to count; absent: `closeMs`. */
  readonly gapMs?: number
}

/** Resolves where the upstream says that it is ready; rejects where it does not, or says nothing in time. */
export type Probe = (origin: string, withinMs: number) => Promise<void>

export type Verdict = 'unknown' | 'healthy' | 'unhealthy'

/** While a verdict is about to change, probes follow each other this closely. */
const closeMs = 500

/**
 * One kube-apiserver, and the verdict on it.
 *
 *   unknown -> healthy | unhealthy      by the first probe
 *   healthy -> unhealthy                by `failedRetry` failed probes in a row
 *   unhealthy -> healthy                by `healthyThreshold` good ones in a row
 *
 * Only probes decide. What requests meet with can bring the next probe forward; but many failed requests within a moment are one
 * failure, so a probe that says again what was said a moment ago is not counted again.
 */
export class Upstream {
  readonly origin: string
  readonly #probe: Probe
  readonly #rules: HealthRules
  readonly #onVerdict: () => void
  #verdict: Verdict = 'unknown'
  #streak = 0
  #tenure = new AbortController()
  #probing: Promise<boolean> | undefined
  #next: Disposable | undefined
  /** The time of the next probe has come. */
  #due = false
  #countedAt = 0
  #closed = false

  constructor(origin: string, probe: Probe, rules: HealthRules, onVerdict: () => void) {
    this.origin = origin
    this.#probe = probe
    this.#rules = rules
    this.#onVerdict = onVerdict
  }

  get verdict(): Verdict {
    return this.#verdict
  }

  /** Aborts when the upstream stops being healthy: what hangs on a half-dead link ends. */
  get tenure(): AbortSignal {
    return this.#tenure.signal
  }

  /** Probes now, or joins the probe under way. True where it succeeded, whether that counts or not. */
  probe(): Promise<boolean> {
    this.#probing ??= this.#run().finally(() => {
      this.#probing = undefined
    })
    return this.#probing
  }

  async #run(): Promise<boolean> {
    const good = await this.#probe(this.origin, this.#rules.timeoutMs).then(
      () => true,
      () => false,
    )
    if (!this.#closed && this.#counts(good)) this.#count(good)
    return good
  }

  #counts(good: boolean): boolean {
    const repeats = this.#streak !== 0 && good === this.#streak > 0
    return this.#due || !repeats || elapsed() - this.#countedAt >= (this.#rules.gapMs ?? closeMs)
  }

  #count(good: boolean): void {
    this.#next?.[Symbol.dispose]()
    this.#due = false
    this.#countedAt = elapsed()
    this.#judge(good)
    const settled = (this.#verdict === 'healthy') === good
    this.#next = after(settled ? this.#rules.intervalMs : closeMs, () => {
      this.#due = true
      void this.probe()
    })
  }

  #judge(good: boolean): void {
    this.#streak = good === this.#streak > 0 ? this.#streak + (good ? 1 : -1) : good ? 1 : -1
    const { failedRetry, healthyThreshold } = this.#rules
    switch (this.#verdict) {
      case 'unknown':
        return this.#turn(good ? 'healthy' : 'unhealthy')
      case 'healthy':
        if (this.#streak <= -failedRetry) this.#turn('unhealthy')
        return
      case 'unhealthy':
        if (this.#streak >= healthyThreshold) this.#turn('healthy')
        return
    }
  }

  #turn(verdict: Verdict): void {
    this.#verdict = verdict
    if (verdict === 'healthy') this.#tenure = new AbortController()
    else this.#tenure.abort(new TenureOver(this.origin))
    this.#onVerdict()
  }

  close(): void {
    this.#closed = true
    this.#next?.[Symbol.dispose]()
    this.#tenure.abort(new TenureOver(this.origin))
  }
}

/** The reason of a tenure's signal. */
export class TenureOver extends Error {
  readonly code = 'TENURE_OVER'
  constructor(origin: string) {
    super(`${origin} is no longer healthy`)
  }
}

/** Resolves to false where `upstream` does not answer a probe before `ms` have passed. */
export async function answersWithin(upstream: Upstream, ms: number): Promise<boolean> {
  const patience = new AbortController()
  try {
    return await Promise.race([upstream.probe(), sleep(ms, patience.signal).then(() => false)])
  } finally {
    patience.abort()
  }
}
