import type { Upstream } from './upstream.ts'

export type BalanceMode = 'round-robin' | 'priority'

/**
 * All upstreams together: who may be asked, and whether anybody can. Online while any upstream is healthy; a spell is the time between
 * two changes of that.
 */
export class Cloud implements Disposable {
  readonly upstreams: readonly Upstream[]
  readonly #mode: BalanceMode
  readonly #onChange: (online: boolean) => void
  #online: boolean | undefined
  #since = 0
  #turn = 0
  #spell = new AbortController()
  readonly #first: Promise<void>

  /** `build` is given what each upstream is to call when its verdict changes. */
  constructor(
    build: (onVerdict: () => void) => readonly Upstream[],
    mode: BalanceMode,
    onChange: (online: boolean) => void,
  ) {
    this.#mode = mode
    this.#onChange = onChange
    this.upstreams = build(() => this.#judge())
    // One good answer is enough to begin with; a bad one has to wait for the others.
    this.#first = Promise.any(
      this.upstreams.map(async (upstream) => {
        if (!(await upstream.probe())) throw new Error('not ready')
      }),
    ).catch(() => undefined)
  }

  #judge(): void {
    const verdicts = this.upstreams.map(({ verdict }) => verdict)
    const online = verdicts.includes('healthy')
    if (!online && verdicts.includes('unknown')) return
    if (online === this.#online) return
    this.#online = online
    this.#since = Date.now()
    const ended = this.#spell
    this.#spell = new AbortController()
    this.#onChange(online)
    ended.abort()
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

  /** Healthy upstreams in the order in which they are to be asked; empty when offline. */
  candidates(): readonly Upstream[] {
    const healthy = this.upstreams.filter(({ verdict }) => verdict === 'healthy')
    if (this.#mode === 'priority' || healthy.length < 2) return healthy
    this.#turn = (this.#turn + 1) % healthy.length
    return [...healthy.slice(this.#turn), ...healthy.slice(0, this.#turn)]
  }

  [Symbol.dispose](): void {
    for (const upstream of this.upstreams) upstream.close()
  }
}
