import { X509Certificate } from 'node:crypto'
import { follow } from '../../base/abort.ts'
import { jitter, now, sleep } from '../../base/clock.ts'
import { messageOf } from '../../config/settings.ts'
import { RequestDenied } from './signed-certificate.ts'

/** Times, in milliseconds. */
export interface RenewalPace {
  /** Between two attempts, at first and at most; each is jittered. */
  readonly firstRetryMs: number
  readonly longestRetryMs: number
  /** How long one attempt waits for approval. */
  readonly approvalMs: number
  /** The longest time between two looks at the clock, which may be set. */
  readonly lookMs: number
}

export const usualRenewalPace: RenewalPace = {
  firstRetryMs: 2_000,
  longestRetryMs: 60_000,
  approvalMs: 60_000,
  lookMs: 60_000,
}

/** The share of its life after which a certificate is rotated, as the kubelet does it. */
const earliestShare = 0.7
const latestShare = 0.9

export interface CertificateRenewalOptions {
  /** The time until a certificate is to be obtained, looked at again and again; 0: now. */
  readonly dueMs: () => number
  /** Obtains one, and stores it. */
  readonly obtain: (signal: AbortSignal) => Promise<void>
  /** Called with each reason why there is no new certificate yet, once while it stays the same. */
  readonly onFailure: (why: string) => void
  readonly pace: RenewalPace
}

/** Obtains a certificate whenever one is due, and tries again for as long as it takes. */
export class CertificateRenewal implements AsyncDisposable {
  readonly #options: CertificateRenewalOptions
  readonly #stopped = new AbortController()
  readonly #running: Promise<void>
  #pause = new AbortController()
  #retryMs: number
  #fault: string | undefined

  constructor(options: CertificateRenewalOptions) {
    this.#options = options
    this.#retryMs = options.pace.firstRetryMs
    this.#running = this.#run()
  }

  /** Why there is no new certificate although one is due; `undefined`: none is, or none failed. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** To be called when an attempt may succeed that failed before: it is made now. */
  wake(): void {
    this.#retryMs = this.#options.pace.firstRetryMs
    this.#pause.abort()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort()
    this.#pause.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped
    const { dueMs, obtain, pace } = this.#options
    while (!signal.aborted) {
      const pause = new AbortController()
      this.#pause = pause
      using _stopping = follow(signal, pause)
      const due = dueMs()
      if (due > 0) {
        await sleep(Math.min(due, pace.lookMs), pause.signal)
        continue
      }
      try {
        await obtain(signal)
        this.#fault = undefined
        this.#retryMs = pace.firstRetryMs
        // By a wrong clock the new one may be due at once.
        await sleep(pace.lookMs, pause.signal)
      } catch (cause) {
        if (signal.aborted) return
        const retryMs = this.#failed(cause)
        await sleep(jitter(retryMs / 2, retryMs), pause.signal)
      }
    }
  }

  /** Returns the time until the next attempt. */
  #failed(cause: unknown): number {
    const why = messageOf(cause)
    if (why !== this.#fault) this.#options.onFailure(why)
    this.#fault = why
    const { longestRetryMs } = this.#options.pace
    const retryMs = cause instanceof RequestDenied ? longestRetryMs : this.#retryMs
    this.#retryMs = Math.min(2 * retryMs, longestRetryMs)
    return retryMs
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
