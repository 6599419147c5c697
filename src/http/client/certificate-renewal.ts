import { X509Certificate } from 'node:crypto'
import { elapsed, jitter, now } from '../../base/clock.ts'
import { WakeableSleep } from '../../base/wakeable-sleep.ts'
import { timeText } from '../../certificates/validity.ts'
import { messageOf } from '../../config/settings.ts'
import { RequestDenied, RequestPending } from './signed-certificate.ts'

/** Times, in milliseconds. */
export interface RenewalPace {
  /** Between two attempts, at first and at most; each is jittered. */
  readonly firstRetryMs: number
  readonly longestRetryMs: number
  /** At most between a denial and the next request; at first it is `lookMs`. */
  readonly longestDeniedMs: number
  /** How long one attempt waits for approval. */
  readonly approvalMs: number
  /** The longest time between two looks at the clock, which may be set. */
  readonly lookMs: number
}

/** Many nodes share a cluster, which keeps a denied request for an hour, and others for a day. */
export const usualRenewalPace: RenewalPace = {
  firstRetryMs: 2_000,
  longestRetryMs: 10 * 60_000,
  longestDeniedMs: 6 * 3_600_000,
  approvalMs: 60_000,
  lookMs: 60_000,
}

/** The share of its life after which a certificate is rotated, as the kubelet does it. */
const earliestShare = 0.7
const latestShare = 0.9

/** One attempt to obtain a certificate. */
export interface RenewalAttempt {
  readonly signal: AbortSignal
  /** How long it may wait for approval; 0: the request waits already, and is looked at once. */
  readonly patienceMs: number
  /** Whether the last request was denied, so that another one needs another key. */
  readonly wasDenied: boolean
}

export interface CertificateRenewalOptions {
  /** The time until a certificate is to be obtained, which is read repeatedly; 0: now. */
  readonly dueMs: () => number
  /** Obtains one, and stores it. */
  readonly obtain: (attempt: RenewalAttempt) => Promise<void>
  /** Called with each reason why there is no new certificate yet, once while it stays the same. */
  readonly onFailure: (why: string) => void
  readonly pace: RenewalPace
}

/**
 * Obtains a certificate whenever one is due, and tries again for as long as it takes, ever more
 * rarely: while attempts fail, a request waits, which is made once, and while each new certificate
 * is due at once, as API servers refuse it. After a denial the next request is made later each
 * time, whatever happens meanwhile: an approver that denies one will deny another.
 */
export class CertificateRenewal implements AsyncDisposable {
  readonly #options: CertificateRenewalOptions
  readonly #stopped = new AbortController()
  readonly #sleep = new WakeableSleep(this.#stopped.signal)
  readonly #running: Promise<void>
  #retryMs: number
  #deniedMs: number
  /** On the monotonic clock. */
  #deniedUntil = 0
  #last: 'denied' | 'pending' | undefined
  #fault: string | undefined

  constructor(options: CertificateRenewalOptions) {
    this.#options = options
    this.#retryMs = options.pace.firstRetryMs
    this.#deniedMs = options.pace.lookMs
    this.#running = this.#run()
  }

  /** Why there is no new certificate although one is due; `undefined`: none is, or none failed. */
  get fault(): string | undefined {
    const waitMs = this.#deniedUntil - elapsed()
    if (this.#fault === undefined || waitMs <= 0) return this.#fault
    return `${this.#fault}; the next request is made at ${timeText(now() + waitMs)}`
  }

  /**
   * To be called when an attempt may succeed that failed before: it is made now, but not before its
   * time after a denial.
   */
  wake(): void {
    this.#retryMs = this.#options.pace.firstRetryMs
    this.#sleep.wake()
  }

  /** Makes an attempt now, also after a denial: an operator has changed something. */
  retry(): void {
    this.#deniedUntil = 0
    this.wake()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped
    const { dueMs, pace } = this.#options
    while (!signal.aborted) {
      const due = Math.max(dueMs(), this.#deniedUntil - elapsed())
      if (due > 0) {
        this.#retryMs = pace.firstRetryMs
        await this.#sleep.sleep(Math.min(due, pace.lookMs))
        continue
      }
      // By a wrong clock, or with a life of minutes, the new one may be due at once.
      const leastMs = (await this.#attempt(signal)) ? pace.lookMs : 0
      const retryMs = this.#retryMs
      this.#retryMs = Math.min(2 * retryMs, pace.longestRetryMs)
      await this.#sleep.sleep(Math.max(leastMs, jitter(retryMs / 2, retryMs)))
    }
  }

  /** Whether there is a new certificate. */
  async #attempt(signal: AbortSignal): Promise<boolean> {
    const { obtain, onFailure, pace } = this.#options
    const last = this.#last
    this.#last = undefined
    try {
      const patienceMs = last === 'pending' ? 0 : pace.approvalMs
      await obtain({ signal, patienceMs, wasDenied: last === 'denied' })
      this.#fault = undefined
      this.#deniedMs = pace.lookMs
      return true
    } catch (cause) {
      if (signal.aborted) return false
      if (cause instanceof RequestPending) this.#last = 'pending'
      else if (cause instanceof RequestDenied) {
        this.#last = 'denied'
        this.#deniedUntil = elapsed() + jitter(this.#deniedMs / 2, this.#deniedMs)
        this.#deniedMs = Math.min(2 * this.#deniedMs, pace.longestDeniedMs)
      }
      const why = messageOf(cause)
      if (why !== this.#fault) onFailure(why)
      this.#fault = why
      return false
    }
  }
}

/** When a certificate is to be rotated, drawn once for each. */
export class RotationTime {
  #certificate = ''
  #at = 0

  /** The time until then; 0 where it has come. */
  untilDue(certificate: string): number {
    if (this.#certificate !== certificate) {
      const { validFromDate, validToDate } = new X509Certificate(certificate)
      const [from, to] = [validFromDate.getTime(), validToDate.getTime()]
      this.#certificate = certificate
      this.#at = from + (to - from) * jitter(earliestShare, latestShare)
    }
    return Math.max(0, this.#at - now())
  }
}
