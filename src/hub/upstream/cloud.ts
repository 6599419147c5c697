import { now } from '../../base/clock.ts'
import { balancer, type Asker, type Balancer, type BalanceMode } from './balance.ts'
import type { Upstream } from './upstream.ts'

export interface CloudParts {
  /** Most wanted first, each once. */
  readonly origins: readonly string[]
  /**
   * Makes an upstream, which is to call `onVerdict` when its verdict changes, and `onCredentials`
   * when it refuses or accepts the hub's.
   */
  readonly build: (origin: string, onVerdict: () => void, onCredentials: () => void) => Upstream
  readonly mode: BalanceMode
  readonly onOnline: (online: boolean) => void
  /** Called when an upstream has become unhealthy or was removed: its connections can be closed. */
  readonly onGone?: (origin: string) => void
}

/**
 * All upstreams together: in which order to ask them, and whether any can be asked. Online while
 * any upstream answers its probes, even if it says that it is not ready; a spell is the time
 * between two changes of that.
 */
export class Cloud implements Disposable {
  readonly #parts: CloudParts
  #balance: Balancer
  #upstreams: readonly Upstream[]
  #online: boolean | undefined
  #since = 0
  #spell = new AbortController()
  /** Aborts when an API server accepts the hub's credentials again. */
  #refusal = new AbortController()
  readonly #first: Promise<void>

  constructor(parts: CloudParts) {
    this.#parts = parts
    this.#balance = balancer(parts.mode)
    this.#upstreams = parts.origins.map((origin) => this.#build(origin))
    // One good answer settles that the hub is online; offline is settled only when all have failed.
    this.#first = this.anyAnswers().then(() => undefined)
  }

  #build(origin: string): Upstream {
    const upstream: Upstream = this.#parts.build(
      origin,
      () => {
        if (upstream.verdict === 'unhealthy') this.#parts.onGone?.(origin)
        this.#judge()
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
   * Where all API servers that can be reached refuse the hub's own credentials: a signal that
   * aborts when one accepts them, or may accept others.
   */
  get refusal(): AbortSignal | undefined {
    const reachable = this.#upstreams.filter(({ standing }) => standing !== 'gone')
    const refused =
      reachable.length > 0 && reachable.every(({ refusesCredentials }) => refusesCredentials)
    return refused ? this.#refusal.signal : undefined
  }

  /** The hub has other credentials now. */
  credentialsReplaced(): void {
    for (const upstream of this.#upstreams) upstream.credentialsRenewed()
  }

  #judge(): void {
    const verdicts = this.#upstreams.map(({ verdict }) => verdict)
    const online = verdicts.includes('healthy') || verdicts.includes('unready')
    if (!online && verdicts.includes('unknown')) return
    if (online === this.#online) return
    this.#online = online
    this.#since = now()
    const ended = this.#spell
    this.#spell = new AbortController()
    this.#parts.onOnline(online)
    ended.abort()
  }

  get upstreams(): readonly Upstream[] {
    return this.#upstreams
  }

  /** `undefined` until the first verdict. */
  get online(): boolean | undefined {
    return this.#online
  }

  /** When the present spell began, in milliseconds since the epoch. */
  get since(): number {
    return this.#since
  }

  /** Aborts when the present spell ends: offline, that is when the cloud is back. */
  get spell(): AbortSignal {
    return this.#spell.signal
  }

  /** Settles with the first verdict; never later than one probe of each takes. */
  settled(): Promise<void> {
    return this.#first
  }

  /** Upstreams in the order in which `asker` is to ask them; empty when offline. */
  candidates(asker: Asker): readonly Upstream[] {
    return this.#balance(asker, this.#upstreams)
  }

  /**
   * Probes all upstreams, whatever the verdict on them. True as soon as one answers, false when
   * none has.
   */
  anyAnswers(): Promise<boolean> {
    return Promise.any(
      this.#upstreams.map(async (upstream) => {
        if (!(await upstream.probe())) throw new Error(`${upstream.origin} does not answer`)
      }),
    ).then(
      () => true,
      () => false,
    )
  }

  /**
   * Goes over to other addresses. An upstream that stays keeps its verdict, its record and its
   * requests under way; one that goes is closed, which ends its requests, watches cleanly; a new
   * one is probed at once. An empty list changes nothing.
   */
  replace(origins: readonly string[]): void {
    if (origins.length === 0) return
    const before = this.#upstreams
    const known = new Map(before.map((upstream) => [upstream.origin, upstream]))
    this.#upstreams = [...new Set(origins)].map(
      (origin) => known.get(origin) ?? this.#build(origin),
    )
    for (const upstream of before) {
      if (this.#upstreams.includes(upstream)) continue
      upstream.close()
      this.#parts.onGone?.(upstream.origin)
    }
    for (const upstream of this.#upstreams) if (!before.includes(upstream)) void upstream.probe()
    this.#judge()
    this.#endRefusal()
  }

  /** Asks upstreams in another order from the next request on. */
  balanceBy(mode: BalanceMode): void {
    this.#balance = balancer(mode)
  }

  [Symbol.dispose](): void {
    for (const upstream of this.#upstreams) upstream.close()
  }
}
