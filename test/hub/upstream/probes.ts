import { NotReady, ProbeTimeout, type Probe } from '../../../src/hub/upstream/probe.ts'
import type { HealthRules } from '../../../src/hub/upstream/upstream.ts'
import { Condition } from '../../kit/condition.ts'

/**
 * What becomes of a probe: ready, not ready, refused, out of time; or nothing before the test says
 * what.
 */
export type Health = 'good' | 'unready' | 'bad' | 'late' | 'silent'

/** Probes answered as a test says. */
export class Probes {
  readonly asked: string[] = []
  readonly #health = new Map<string, Health>()
  #pending: { origin: string; settle: (health: Health) => void }[] = []
  readonly #sent = new Condition()

  readonly probe: Probe = (origin) => {
    this.asked.push(origin)
    this.#sent.changed()
    return new Promise((resolve, reject) => {
      const settle = (health: Health): void => {
        if (health === 'good') resolve()
        else if (health === 'bad') reject(new Error('refused'))
        else if (health === 'unready') reject(new NotReady('not ready'))
        else if (health === 'late') reject(new ProbeTimeout('too late'))
        else this.#pending.push({ origin, settle })
      }
      settle(this.#health.get(origin) ?? 'good')
    })
  }

  /** From now on, and for probes that are waiting. */
  set(origin: string, health: Health): void {
    this.#health.set(origin, health)
    const pending = this.#pending
    this.#pending = []
    for (const waiting of pending) {
      if (waiting.origin === origin) waiting.settle(health)
      else this.#pending.push(waiting)
    }
  }

  /** Resolves when probes have been sent `times` times in all. */
  async sent(times: number): Promise<void> {
    await this.#sent.until(() => this.asked.length >= times)
  }
}

/** Nothing happens by itself within a test. */
export const patientRules: HealthRules = {
  intervalMs: 1_000_000,
  timeoutMs: 1_000,
  failedRetry: 2,
  healthyThreshold: 2,
  gapMs: 0,
  slowStartMs: 0,
}
