import { now } from '../../base/clock.ts'
import { balancer, type LoadBalancerContext, type Balancer, type BalanceMode } from './balance.ts'
import type { Upstream } from './upstream.ts'

export interface CloudParts {
  /** In order of priority, each once. */
  readonly origins: readonly string[]
  /**
   * Makes an upstream that calls `onHealth` when its health changes, and `onCredentials` when it
   * begins or ceases to refuse the hub's credentials.
   */
  readonly build: (origin: string, onHealth: () => void, onCredentials: () => void) => Upstream
  readonly mode: BalanceMode
  readonly onOnline: (online: boolean) => void
  /** Called when an upstream becomes unhealthy or is removed: its connections can be closed. */
  readonly onGone?: (origin: string) => void
}

/**
 * All upstreams together: the order in which to try them, and whether the hub is online. It is
 * online while any upstream answers its probes, even if that reports that it is not ready.
 */
export class Cloud implements Disposable {
  readonly #parts: CloudParts
  #balance: Balancer
  #upstreams: readonly Upstream[]
  #online: boolean | undefined
  #since = 0
  #onlineChanged = new AbortController()
  /** Aborts when an API server accepts the hub's credentials again. */
  #refusal = new AbortController()
  readonly #firstResult: Promise<void>

  constructor(parts: CloudParts) {
    this.#parts = parts
    this.#balance = balancer(parts.mode)
    this.#upstreams = parts.origins.map((origin) => this.#build(origin))
    // One success decides that the hub is online; it is offline only when all have failed.
    this.#firstResult = this.anyAnswers().then(() => undefined)
  }

  #build(origin: string): Upstream {
    const upstream: Upstream = this.#parts.build(
      origin,
      () => {
        if (upstream.health === 'unhealthy') this.#parts.onGone?.(origin)
        this.#updateOnline()
        this.#endRefusal()
      },
      () => this.#endRefusal(),
    )
    return upstream
  }

  #endRefusal(): void {
    if (this.refusal !== undefined) return
    const ended = this.#refusal
    this.#refusal = new AbortController()
    ended.abort()
  }

  /**
   * Where all reachable API servers refuse the hub's own credentials: a signal that aborts when one
   * accepts them, or may accept other ones.
   */
  get refusal(): AbortSignal | undefined {
    const reachable = this.#upstreams.filter(({ availability }) => availability !== 'unhealthy')
    const refused =
      reachable.length > 0 && reachable.every(({ refusesCredentials }) => refusesCredentials)
    return refused ? this.#refusal.signal : undefined
  }

  /** To be called when the hub has other credentials. */
  credentialsReplaced(): void {
    for (const upstream of this.#upstreams) upstream.credentialsRenewed()
  }

  #updateOnline(): void {
    const all = this.#upstreams.map(({ health }) => health)
    const online = all.includes('healthy') || all.includes('unready')
    if (!online && all.includes('unknown')) return
    if (online === this.#online) return
    this.#online = online
    this.#since = now()
    const ended = this.#onlineChanged
    this.#onlineChanged = new AbortController()
    this.#parts.onOnline(online)
    ended.abort()
  }

  get upstreams(): readonly Upstream[] {
    return this.#upstreams
  }

  /** `undefined` until the first probes have decided. */
  get online(): boolean | undefined {
    return this.#online
  }

  /** When `online` changed last, in milliseconds since the epoch. */
  get since(): number {
    return this.#since
  }

  /** Aborts when `online` changes next. */
  get onlineChanged(): AbortSignal {
    return this.#onlineChanged.signal
  }

  /** Resolves when `online` is known: never later than one probe of each upstream takes. */
  onlineKnown(): Promise<void> {
    return this.#firstResult
  }

  /** The upstreams in the order in which to try them for a request; empty when offline. */
  attemptOrder(context: LoadBalancerContext): readonly Upstream[] {
    return this.#balance(context, this.#upstreams)
  }

  /** Probes all upstreams, whatever their health. True as soon as one answers, false when none. */
  anyAnswers(): Promise<boolean> {
    return Promise.any(
      this.#upstreams.map(async (upstream) => {
        if (!(await upstream.probe())) throw new Error(`${upstream.origin} does not answer probes`)
      }),
    ).then(
      () => true,
      () => false,
    )
  }

  /**
   * Sets the addresses. An upstream that stays keeps its health and its requests in flight; one
   * that is removed is closed, which ends its requests; a new one is probed at once. An empty list
   * changes nothing.
   */
  replace(origins: readonly string[]): void {
    if (origins.length === 0) return
    const before = this.#upstreams
    const existing = new Map(before.map((upstream) => [upstream.origin, upstream]))
    this.#upstreams = [...new Set(origins)].map(
      (origin) => existing.get(origin) ?? this.#build(origin),
    )
    for (const upstream of before) {
      if (this.#upstreams.includes(upstream)) continue
      upstream.close()
      this.#parts.onGone?.(upstream.origin)
    }
    for (const upstream of this.#upstreams) if (!before.includes(upstream)) void upstream.probe()
    this.#updateOnline()
    this.#endRefusal()
  }

  /** Sets the load balancing mode, from the next request on. */
  balanceBy(mode: BalanceMode): void {
    this.#balance = balancer(mode)
  }

  [Symbol.dispose](): void {
    for (const upstream of this.#upstreams) upstream.close()
  }
}
