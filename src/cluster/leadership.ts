import { follow } from '../base/abort.ts'
import { after, elapsed, jitter, now, sleep } from '../base/clock.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { objectAt, textAt } from '../api/kube/json-at.ts'
import type { ApiServer } from './api/api-server.ts'
import { isConflict } from './api/failure.ts'

/** The names and times of the election, as client-go's leaderelection has them. */
export interface LeadershipOptions {
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
  readonly api: ApiServer
  /**
   * Called when this process leads, until `term` aborts or it settles itself; is awaited then. Two
   * processes may both take themselves for the leader for moments, one whose machine slept: what it
   * writes names the version that it has read, or does no harm twice.
   */
  readonly lead: (term: AbortSignal) => Promise<void>
  readonly onFailure: (cause: unknown) => void
  readonly onChange?: (leads: boolean, holder: string) => void
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
  #term: AbortSignal | undefined

  constructor(options: LeadershipOptions) {
    this.#options = options
    this.#running = this.#run(this.#stopped.signal)
  }

  /** The last observed holder. */
  get holder(): string {
    return this.#seen?.holder ?? ''
  }

  get leads(): boolean {
    return this.#term?.aborted === false
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const began = elapsed()
      if (await this.#try()) await this.#lead(began)
      else await sleep(this.#options.retryMs * jitter(1, 1.2), signal)
    }
  }

  /** `renewed`: when the attempt began that took the lease. */
  async #lead(renewed: number): Promise<void> {
    const { lead, onChange, onFailure, identity, retryMs, renewMs } = this.#options
    const term = new AbortController()
    using _stopped = follow(this.#stopped.signal, term)
    const end = (): void => term.abort()
    this.#term = term.signal
    onChange?.(true, identity)
    const work = lead(term.signal).catch(onFailure).finally(end)
    for (let last = renewed; !term.signal.aborted;) {
      // A renewal that hangs does not keep the term from ending.
      using _expiry = after(Math.max(0, last + renewMs - elapsed()), end)
      await sleep(retryMs, term.signal)
      if (term.signal.aborted) break
      const began = elapsed()
      if (await this.#try()) last = began
      else if (this.#seen?.holder !== identity) end()
    }
    await work
    await this.#release()
    onChange?.(false, this.holder)
  }

  /** Whether the lease is ours now. A failure is reported, and counts as no. */
  async #try(): Promise<boolean> {
    try {
      return await this.#take()
    } catch (cause) {
      if (!isConflict(cause)) this.#options.onFailure(cause)
      return false
    }
  }

  async #take(): Promise<boolean> {
    const { identity } = this.#options
    const lease = await this.#read()
    if (lease !== undefined) {
      const { holder, at, leaseMs } = this.#observe(lease)
      if (holder !== identity && holder !== '' && elapsed() - at < leaseMs) return false
    }
    await this.#write(lease, identity)
    return true
  }

  /** Makes `holder` the one that has the lease; '': free. `lease`: as it was read. */
  async #write(lease: JsonObject | undefined, holder: string): Promise<void> {
    const { api, namespace, name, leaseMs } = this.#options
    const before = objectAt(lease, 'spec')
    const renewTime = new Date(now()).toISOString().replace('Z', '000Z')
    const isNew = holder !== '' && textAt(before, 'holderIdentity') !== holder
    const spec = {
      holderIdentity: holder,
      leaseDurationSeconds: holder === '' ? 1 : Math.max(1, Math.ceil(leaseMs / 1000)),
      acquireTime: isNew ? renewTime : (before['acquireTime'] ?? renewTime),
      renewTime,
      leaseTransitions: Number(before['leaseTransitions'] ?? 0) + (isNew && lease ? 1 : 0),
    }
    const made = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' }
    const written = await api.call({
      ...this.#inTime,
      method: lease ? 'PUT' : 'POST',
      path: lease ? `${pathIn(namespace)}/${name}` : pathIn(namespace),
      body: JSON.stringify({ ...made, metadata: { name, namespace }, ...lease, spec }),
    })
    this.#observe(written)
  }

  #read(): Promise<JsonObject | undefined> {
    const { api, namespace, name } = this.#options
    return api.get(`${pathIn(namespace)}/${name}`, this.#inTime)
  }

  /** A request that hangs is given up in time for another try. */
  get #inTime() {
    return { timeoutMs: Math.ceil(this.#options.renewMs / 2) }
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
    const { identity, onFailure } = this.#options
    if (this.holder !== identity) return
    try {
      const lease = await this.#read()
      if (textAt(lease, 'spec', 'holderIdentity') === identity) await this.#write(lease, '')
    } catch (cause) {
      if (!isConflict(cause)) onFailure(cause)
    }
  }

  /** Ends the term and gives the lease up. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort()
    await this.#running
  }
}

const pathIn = (namespace: string): string =>
  `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
