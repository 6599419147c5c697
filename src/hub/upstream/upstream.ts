import { after, afterAwake, elapsed, jitter, turn } from '../../base/clock.ts'
import type { Candidate, Standing } from './balance.ts'
import { NotReady, NoWord, ProbeRefused, type Probe } from './probe.ts'
import { TrackRecord, type TrackRules } from './track-record.ts'
import { Judgement, type Finding, type Hysteresis, type Verdict } from './verdict.ts'

/** What showed the hub's own credentials to an upstream. */
type Shown = 'request' | 'probe'

/** How verdicts on an upstream are reached. */
export interface HealthRules extends Hysteresis, Partial<TrackRules> {
  /** From one probe to the next, about; less while it is unhealthy and has not been for long. */
  readonly intervalMs: number
  readonly timeoutMs: number
  /** How far apart probes that say the same have to be for each to count; absent: `closeMs`. */
  readonly gapMs?: number
}

/** An upstream that has sent anything within so many milliseconds needs no probe. */
const freshMs = 500

/** While a verdict is about to change, probes follow each other this closely. */
const closeMs = 500

/**
 * While an upstream is unhealthy, the rest between probes is this share of the time for which it
 * has been so, at least `firstRestMs` and at most the usual interval: the end of a short outage is
 * found soon, and a long one costs no more probes than usual.
 */
const outageShare = 1 / 4
const firstRestMs = 1_000

/** What upstreams tell their surroundings. */
export interface UpstreamHooks {
  /** The verdict is another. */
  readonly onVerdict: (upstream: Upstream) => void
  /** Requests fail at it: for `forMs` it is asked only after those that are ready. */
  readonly onEjected?: (upstream: Upstream, forMs: number) => void
  /** It refuses the hub's own credentials from now on, or no longer does. */
  readonly onCredentials?: (upstream: Upstream) => void
}

/**
 * One kube-apiserver, and the verdict on it.
 *
 * `unready` is an API server that answers its probes, but not that it is ready; it is asked when
 * there is no better one.
 *
 * Only probes decide. A failed request brings the next probe forward; but requests fail in numbers
 * within a moment, so a probe that repeats the finding of a moment ago is not counted again. A
 * probe without an answer does not count if bytes of other answers came meanwhile: over a thin
 * link, or from an API server under load, probes are late first, and all upstreams would be given
 * up at once for being busy.
 */
export class Upstream implements Candidate {
  readonly origin: string
  #host: string | undefined
  readonly #probe: Probe
  #rules: HealthRules
  readonly #hooks: UpstreamHooks
  readonly #record: TrackRecord
  readonly #judgement = new Judgement()
  /** When the verdict changed last. */
  #turnedAt = elapsed()
  #counted: Finding | undefined
  #countedAt = 0
  #tenure = new AbortController()
  #probing: Promise<boolean> | undefined
  #next: Disposable | undefined
  /** The time of the next probe has come. */
  #due = false
  #heardAt = -Infinity
  #silent = false
  /** How long the last probe took that was answered. */
  #tookMs = 0
  readonly #waiting = new Set<() => void>()
  #lastError: Error | undefined
  #refused: Shown | undefined
  #renewedAt = -Infinity
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
    return this.#judgement.verdict
  }

  /**
   * The name or address in its origin, with a port that is not the scheme's own: what a Host field
   * says.
   */
  get host(): string {
    return (this.#host ??= new URL(this.origin).host)
  }

  /** Aborts when the upstream is no longer there: what hangs on a half-dead link ends. */
  get tenure(): AbortSignal {
    return this.#tenure.signal
  }

  get standing(): Standing {
    switch (this.verdict) {
      case 'healthy':
        if (this.#silent) return 'silent'
        return this.#record.ejected ? 'ejected' : 'ready'
      case 'unready':
        return this.#silent ? 'silent' : 'unready'
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
    this.#silent = false
  }

  /**
   * A request and a probe were not answered, and nothing has come from it since: it may be dead,
   * though the verdict has not changed yet.
   */
  get silent(): boolean {
    return this.#silent
  }

  /** Calls `act` each time it is found to be silent, until disposed. */
  onSilence(act: () => void): Disposable {
    this.#waiting.add(act)
    return { [Symbol.dispose]: () => this.#waiting.delete(act) }
  }

  /**
   * For a request that has waited without an answer: false, and the upstream is silent from then
   * on, where it neither answers a probe nor sends anything else within `ms`. It is not probed if
   * it has just sent something: many requests wait where answers are slow, and would load it with
   * probes. Where the way is long, a probe needs its time: twice what the last one took is waited
   * for in any case.
   */
  async answersWithin(ms: number): Promise<boolean> {
    const began = elapsed()
    if (this.heardSince(began - freshMs)) return true
    const late = Promise.withResolvers<void>()
    using _patience = afterAwake(Math.max(ms, 2 * this.#tookMs), late.resolve)
    const there = await Promise.race([
      this.probe(),
      // Bytes may have arrived that this process has had no time to read.
      late.promise.then(turn).then(() => this.heardSince(began)),
    ])
    if (!there) this.#fallSilent()
    return there
  }

  #fallSilent(): void {
    this.#silent = true
    for (const act of this.#waiting) act()
  }

  /** It has answered a request. */
  answered(): void {
    this.heard()
    this.#record.answered()
  }

  /**
   * A request that went out at `began`, by the clock of `elapsed`, was not answered: probes at
   * once.
   */
  failed(began: number): void {
    this.#record.failed(began)
    void this.probe()
  }

  /**
   * Whether it refuses the hub's own credentials, as far as is known: it answered 401 where they
   * were shown last.
   */
  get refusesCredentials(): boolean {
    return this.#refused !== undefined
  }

  /**
   * The hub's own credentials were shown to it at `shownAt`, by the clock of `elapsed`. An accepted
   * request ends any refusal; an accepted probe ends only one that a probe has found as well, since
   * a gateway may answer probes in the API server's place. What was shown before the hub had its
   * present credentials says nothing of them.
   */
  credentialsShown(accepted: boolean, by: Shown, shownAt: number): void {
    if (shownAt < this.#renewedAt) return
    if (!accepted) this.#setRefused(by === 'probe' ? by : (this.#refused ?? by))
    else if (by === 'request' || this.#refused === 'probe') this.#setRefused(undefined)
  }

  /** The hub has other credentials now: whether it accepts them is not known, and it is probed. */
  credentialsRenewed(): void {
    this.#renewedAt = elapsed()
    if (this.#refused === undefined) return
    this.#setRefused(undefined)
    void this.probe()
  }

  #setRefused(by: Shown | undefined): void {
    const changed = (this.#refused === undefined) !== (by === undefined)
    this.#refused = by
    if (changed) this.#hooks.onCredentials?.(this)
  }

  /** Takes other rules from the next probe on. */
  judgeBy(rules: HealthRules): void {
    this.#rules = rules
  }

  /**
   * Probes now, or joins the probe under way. True where the upstream answered, even that it is not
   * ready, or sent anything else meanwhile.
   */
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
    if (found === 'healthy') this.credentialsShown(true, 'probe', began)
    else if (this.#lastError instanceof ProbeRefused) this.credentialsShown(false, 'probe', began)
    if (this.#lastError instanceof NoWord && this.heardSince(began)) {
      this.#again(this.#restMs())
      return true
    }
    if (found !== 'unhealthy') {
      this.#silent = false
      this.#tookMs = elapsed() - began
    } else if (this.#lastError instanceof NoWord) this.#fallSilent()
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
    const before = this.verdict
    const turned = this.#judgement.count(found, this.#rules)
    if (turned !== undefined) this.#turn(before, turned)
    this.#again(this.verdict === found ? this.#restMs() : closeMs)
  }

  /**
   * Drawn at random: nodes that saw an upstream fail at the same moment would otherwise all probe
   * it at the same moment, for ever.
   */
  #restMs(): number {
    const { intervalMs } = this.#rules
    const soonMs = Math.max(firstRestMs, (elapsed() - this.#turnedAt) * outageShare)
    return (
      Math.min(intervalMs, this.verdict === 'unhealthy' ? soonMs : intervalMs) * jitter(0.8, 1.2)
    )
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

  #turn(before: Verdict, verdict: Finding): void {
    this.#turnedAt = elapsed()
    if (verdict === 'unhealthy') this.#tenure.abort(new TenureOver(this.origin, false))
    else if (before === 'unhealthy') this.#tenure = new AbortController()
    if (verdict === 'healthy' && before !== 'unknown') this.#record.begin()
    this.#hooks.onVerdict(this)
  }

  /** Ends its tenure and its probes; no hook is called any more. */
  close(): void {
    this.#closed = true
    this.#next?.[Symbol.dispose]()
    this.#tenure.abort(new TenureOver(this.origin, true))
  }
}

/** Why a tenure's signal has aborted. */
export class TenureOver extends Error {
  readonly code = 'TENURE_OVER'
  /** True where the upstream was removed from the configuration, false where it failed. */
  readonly removed: boolean
  constructor(origin: string, removed: boolean) {
    super(removed ? `${origin} is no longer asked` : `${origin} has failed`)
    this.removed = removed
  }
}
