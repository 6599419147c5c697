import { onAbort } from '../base/abort.ts'
import { after, elapsed, jitter, now as timeOfDay, sleep } from '../base/clock.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { objectAt, textAt } from '../api/kube/json-at.ts'
import type { ApiServer } from './api/api-server.ts'
import { isConflict, isNotFound } from './api/failure.ts'

/** The names and times of the election, as client-go's leaderelection has them. */
export interface ElectionOptions {
  readonly namespace: string
  readonly name: string
  /** Another in each process, and in each life of a process. */
  readonly identity: string
  /** How long others wait after the last renewal that they saw. */
  readonly leaseMs: number
  /** How long the leader may try to renew before it stops; less than `leaseMs`. */
  readonly renewMs: number
  /** Time between two tries. */
  readonly retryMs: number
}

/** The time for which one process leads. */
export interface Term {
  /** Aborts when the process no longer leads, or is to stop. */
  readonly signal: AbortSignal
  /**
   * Whether it still leads, by the clock. Checked before each write, since a process that was
   * frozen notices its signal late. True no longer than `renewMs` after the start of the last
   * successful renewal, before another process may lead.
   */
  readonly holds: () => boolean
}

export interface LeadershipOptions extends ElectionOptions {
  readonly api: ApiServer
  /**
   * Called when this process leads; leads on until it settles or the term ends, and is awaited
   * then.
   */
  readonly lead: (term: Term) => Promise<void>
  readonly onFailure: (cause: unknown) => void
  readonly onChange?: (leads: boolean, holder: string) => void
}

class NoLongerLeads extends Error {
  readonly code = 'NO_LONGER_LEADS'
  constructor() {
    super('this process no longer leads')
  }
}

/**
 * The last observed lease, and when it changed by our own clock: clocks of other processes are
 * never compared with ours.
 */
interface ObservedLease {
  readonly record: string
  readonly holder: string
  readonly leaseMs: number
  readonly at: number
}

/**
 * Leads while no other process does: takes the lease when it is free or has not been renewed for
 * its duration, renews it, and stops before another may take it. Given up at the end, so that
 * another need not wait.
 *
 *   waiting -> leading   the lease was taken
 *   leading -> waiting   it could not be renewed in time, or another has it
 */
export class Leadership implements AsyncDisposable {
  readonly #options: LeadershipOptions
  readonly #stopped = new AbortController()
  readonly #running: Promise<void>
  #seen: ObservedLease | undefined
  /**
   * Both clocks at the start of the last successful renewal: one of them stops while the machine
   * sleeps.
   */
  #renewed: { readonly elapsed: number; readonly time: number } | undefined

  constructor(options: LeadershipOptions) {
    this.#options = options
    this.#running = this.#run()
  }

  /** The last observed holder. */
  get holder(): string {
    return this.#seen?.holder ?? ''
  }

  get leads(): boolean {
    return this.#holds()
  }

  #holds(): boolean {
    const renewed = this.#renewed
    if (renewed === undefined) return false
    const { renewMs } = this.#options
    return elapsed() - renewed.elapsed < renewMs && timeOfDay() - renewed.time < renewMs
  }

  async #run(): Promise<void> {
    const { retryMs } = this.#options
    const { signal } = this.#stopped
    while (!signal.aborted) {
      if (await this.#try()) await this.#lead(signal)
      else await sleep(retryMs * jitter(1, 1.2), signal)
    }
  }

  async #lead(stopped: AbortSignal): Promise<void> {
    const { lead, onChange, onFailure, identity, retryMs } = this.#options
    const term = new AbortController()
    onChange?.(true, identity)
    let ended = false
    const work = lead({ signal: term.signal, holds: () => !term.signal.aborted && this.#holds() })
      .catch(onFailure)
      .finally(() => {
        ended = true
      })
    const end = (): void => term.abort(new NoLongerLeads())
    using _followed = onAbort(stopped, end)
    while (!stopped.aborted && !ended && this.#holds()) {
      // A renewal that hangs does not keep the term from ending.
      using _expiry = after(this.#left(), end)
      await sleep(Math.min(retryMs, this.#left()), stopped)
      if (stopped.aborted || ended) break
      if (!(await this.#try()) && this.#seen?.holder !== identity) break
    }
    end()
    await work
    await this.#release()
    onChange?.(false, this.holder)
  }

  #left(): number {
    const renewed = this.#renewed
    return renewed === undefined
      ? 0
      : Math.max(0, this.#options.renewMs - (elapsed() - renewed.elapsed))
  }

  /** Whether the lease is ours now. A failure is reported, and counts as no. */
  async #try(): Promise<boolean> {
    const began = { elapsed: elapsed(), time: timeOfDay() }
    try {
      if (!(await this.#take())) return false
      this.#renewed = began
      return true
    } catch (cause) {
      if (!isConflict(cause)) this.#options.onFailure(cause)
      return false
    }
  }

  async #take(): Promise<boolean> {
    const { namespace, name, identity, leaseMs } = this.#options
    const lease = await this.#read()
    const time = microTime()
    const now = {
      holderIdentity: identity,
      leaseDurationSeconds: Math.max(1, Math.ceil(leaseMs / 1000)),
      renewTime: time,
    }
    if (lease === undefined) {
      const spec = { ...now, acquireTime: time, leaseTransitions: 0 }
      const made = { ...kind, metadata: { name, namespace }, spec }
      this.#observe(await this.#call('POST', '', made))
      return true
    }
    const seen = this.#observe(lease)
    const ours = seen.holder === identity
    if (!ours && seen.holder !== '' && elapsed() - seen.at < seen.leaseMs) return false
    const { acquireTime = time, leaseTransitions } = objectAt(lease, 'spec')
    const spec = {
      ...now,
      acquireTime: ours ? acquireTime : time,
      leaseTransitions: Number(leaseTransitions ?? 0) + (ours ? 0 : 1),
    }
    this.#observe(await this.#call('PUT', `/${name}`, { ...lease, spec }))
    return true
  }

  async #read(): Promise<JsonObject | undefined> {
    try {
      return await this.#call('GET', `/${this.#options.name}`)
    } catch (cause) {
      if (isNotFound(cause)) return undefined
      throw cause
    }
  }

  /** A request that hangs is given up in time for another try. */
  #call(method: 'GET' | 'POST' | 'PUT', name: string, lease?: JsonObject): Promise<JsonObject> {
    const { api, namespace, renewMs } = this.#options
    return api.call({
      method,
      path: `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases${name}`,
      ...(lease && { body: JSON.stringify(lease) }),
      urgent: true,
      timeoutMs: Math.ceil(renewMs / 2),
    })
  }

  #observe(lease: JsonObject): ObservedLease {
    const spec = objectAt(lease, 'spec')
    const record = JSON.stringify(spec)
    if (this.#seen?.record === record) return this.#seen
    this.#seen = {
      record,
      holder: textAt(spec, 'holderIdentity'),
      // The holder may run with another duration.
      leaseMs: Math.max(this.#options.leaseMs, Number(spec['leaseDurationSeconds'] ?? 0) * 1000),
      at: elapsed(),
    }
    return this.#seen
  }

  /** Gives the lease up where it is still ours; if that fails it ends by itself. */
  async #release(): Promise<void> {
    this.#renewed = undefined
    const { name, identity } = this.#options
    if (this.#seen?.holder !== identity) return
    try {
      const lease = await this.#read()
      if (lease === undefined || textAt(lease, 'spec', 'holderIdentity') !== identity) return
      const time = microTime()
      const spec = {
        leaseTransitions: Number(objectAt(lease, 'spec')['leaseTransitions'] ?? 0),
        holderIdentity: '',
        leaseDurationSeconds: 1,
        acquireTime: time,
        renewTime: time,
      }
      this.#observe(await this.#call('PUT', `/${name}`, { ...lease, spec }))
    } catch (cause) {
      if (!isConflict(cause)) this.#options.onFailure(cause)
    }
  }

  /** Ends the term and gives the lease up. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort()
    await this.#running
  }
}

const kind = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' }

/** Now, with microseconds. */
const microTime = (): string => new Date(timeOfDay()).toISOString().replace('Z', '000Z')
