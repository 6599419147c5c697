import { after, afterAwake, elapsed, every, jitter, now, turn } from '../../base/clock.ts'
import { OpenList } from '../../base/open-list.ts'
import type { LoadBalancedHost, Availability } from './balance.ts'
import { NotReady, ProbeTimeout, ProbeRefused, type Probe } from './probe.ts'
import {
  OutlierDetector,
  Hysteresis,
  type OutlierRules,
  type ProbeResult,
  type HealthThresholds,
  type HealthStatus,
} from './upstream-health.ts'

/**
 * For so long after its last failure an API server that is not ready yet counts as starting: it
 * answers 401, 403 and 404 until it has read the objects that it decides by.
 */
const startMs = 60_000

/** How long an upstream that has refused the hub's credentials is tried after others. */
const refusedMs = 30_000

/**
 * The kind of request that presented the hub's own credentials to an upstream: a client's, or a
 * probe.
 */
type CredentialUse = 'request' | 'probe'

/** The rules for health checks and outlier detection. */
export interface HealthRules extends HealthThresholds, Partial<OutlierRules> {
  /** From one probe to the next, about; less at first while the upstream is unhealthy. */
  readonly intervalMs: number
  readonly timeoutMs: number
  /** Probes with the same result count once within so many ms; absent: `closeMs`. */
  readonly gapMs?: number
}

/** An upstream from which bytes came within so many milliseconds needs no probe. */
const freshMs = 500

/** The interval of probes while the health is about to change. */
const closeMs = 500

/**
 * While an upstream is unhealthy, the interval of probes is this share of the time for which it has
 * been so, at least `firstRestMs` and at most the usual interval: the hub notices the end of a
 * short outage soon, and a long one costs no more probes than usual.
 */
const outageShare = 1 / 4
const firstRestMs = 1_000

/** A failed probe, and how often it was repeated in a row. */
export interface ProbeFailure {
  readonly message: string
  /** The last time, in milliseconds since the epoch. */
  readonly at: number
  readonly times: number
}

/** So many failures with different messages are kept. */
const keptFailures = 5

/** A request to an upstream. */
export interface UnderWay {
  /** Has to end it: the upstream became unhealthy, or was removed. */
  stop(reason: UpstreamGone): void
}

/** A request that waits for its answer. */
export interface Waiting {
  /** The upstream was found to be unresponsive. */
  giveUp(): void
  /** Called every `checkMs`, with the time by the clock of `elapsed`. */
  check(at: number): void
}

/** How exactly requests that wait are timed: one timer for all costs less than one for each. */
const checkMs = 100

interface UpstreamHooks {
  /** The health has changed. */
  readonly onHealth: (upstream: Upstream) => void
  /** Requests fail at it: for `forMs` it is tried only after those that are ready. */
  readonly onEjected?: (upstream: Upstream, forMs: number) => void
  /** It begins or ceases to refuse the hub's own credentials. */
  readonly onCredentials?: (upstream: Upstream) => void
}

/**
 * One kube-apiserver, and its health.
 *
 * An `unready` API server answers its probes, but not that it is ready; it is tried when there is
 * no better one.
 *
 * Only probes decide. A failed request brings the next probe forward; but many requests may fail at
 * the same moment, so a probe that repeats the result of a moment ago does not count again. A probe
 * without an answer does not count if bytes of other answers came meanwhile: over a slow link, or
 * from an API server under load, probes are late first, and all upstreams would become unhealthy at
 * once for being busy.
 */
export class Upstream implements LoadBalancedHost {
  readonly origin: string
  #host: string | undefined
  readonly #probe: Probe
  #rules: HealthRules
  readonly #hooks: UpstreamHooks
  readonly #outliers: OutlierDetector
  readonly #hysteresis = new Hysteresis()
  /** When the health changed last. */
  #healthChangedAt = elapsed()
  #lastCounted: ProbeResult | undefined
  #countedAt = 0
  /** Requests until their answers are over, upgrades included. */
  readonly underWay = new OpenList<UnderWay>()
  readonly #waiting = new OpenList<Waiting>()
  #checks: Disposable | undefined
  #probing: Promise<boolean> | undefined
  #next: Disposable | undefined
  /** The next probe is one of the schedule, not one after a failure. */
  #due = false
  /** When bytes of an answer came last, by the clock of `elapsed`: who reads them sets it. */
  receivedAt = -Infinity
  #unansweredAt = -Infinity
  /** When a request failed last, or it became unhealthy. */
  #failedAt = -Infinity
  /** When the last probe began that found it ready. */
  #readyAt = -Infinity
  /** How long the last answered probe took. */
  #lastProbeMs = 0
  #lastError: Error | undefined
  #failures: readonly ProbeFailure[] = []
  #refusedBy: CredentialUse | undefined
  #refusedAt = Number.NEGATIVE_INFINITY
  #renewedAt = -Infinity
  #closed = false

  constructor(origin: string, probe: Probe, rules: HealthRules, hooks: UpstreamHooks) {
    this.origin = origin
    this.#probe = probe
    this.#rules = rules
    this.#hooks = hooks
    const { ejectMs = rules.intervalMs, slowStartMs = 3 * rules.intervalMs } = rules
    this.#outliers = new OutlierDetector({ ejectMs, slowStartMs }, (forMs) =>
      hooks.onEjected?.(this, forMs),
    )
  }

  get health(): HealthStatus {
    return this.#hysteresis.status
  }

  /** The host of its origin, with a port that is not the scheme's default: for the Host field. */
  get host(): string {
    return (this.#host ??= new URL(this.origin).host)
  }

  /** It is unhealthy or closed: requests under way have been stopped, so that none hangs. */
  get isGone(): boolean {
    return this.#closed || this.health === 'unhealthy'
  }

  get availability(): Availability {
    switch (this.health) {
      case 'healthy':
        if (this.unresponsive) return 'unresponsive'
        return this.#outliers.ejected || this.#isInDoubt || this.#hasRefusedLately
          ? 'ejected'
          : 'ready'
      case 'unready':
        return this.unresponsive ? 'unresponsive' : 'unready'
      case 'unknown':
      case 'unhealthy':
        return 'unhealthy'
    }
  }

  get slowStartWeight(): number {
    return this.#outliers.slowStartWeight
  }

  /** How long the ejection still lasts, or 0. */
  get ejectedForMs(): number {
    return this.#outliers.ejectedForMs
  }

  /** The failure of the last probe; `undefined` where it succeeded. */
  get lastError(): Error | undefined {
    return this.#lastError
  }

  /** The last failures of probes, the latest first. */
  get failures(): readonly ProbeFailure[] {
    return this.#failures
  }

  /** How long the last answered probe took; `undefined`: none was answered. */
  get probeMs(): number | undefined {
    return this.#lastProbeMs === 0 ? undefined : this.#lastProbeMs
  }

  /** When its health changed last, or it was added, in milliseconds since the epoch. */
  get healthSince(): number {
    return now() - (elapsed() - this.#healthChangedAt)
  }

  /** Whether bytes came from it since `then`, by the clock of `elapsed`. */
  receivedSince(then: number): boolean {
    return this.receivedAt >= then
  }

  /**
   * A request and a probe went unanswered, and no byte has come from it since: it may be dead,
   * though its health has not changed yet.
   */
  get unresponsive(): boolean {
    return this.#unansweredAt > this.receivedAt
  }

  /** Adds a request that waits, until `waitNoLonger`. */
  wait(request: Waiting): void {
    this.#waiting.add(request)
    this.#checks ??= every(checkMs, () => this.#check())
  }

  /** No longer waits for an answer. */
  waitNoLonger(request: Waiting): void {
    this.#waiting.delete(request)
  }

  #check(): void {
    const at = elapsed()
    for (const each of this.#waiting) each.check(at)
    if (this.#waiting.size > 0) return
    this.#checks?.[Symbol.dispose]()
    this.#checks = undefined
  }

  /**
   * For a request that has waited without an answer: false, and the upstream is unresponsive from
   * then on, where it neither answers a probe nor sends other bytes within `ms`. It is not probed
   * if bytes have just come from it: many requests wait where answers are slow, and would load it
   * with probes. On a link with a long delay a probe may take twice as long as the last one in any
   * case.
   */
  async answersWithin(ms: number): Promise<boolean> {
    const began = elapsed()
    if (this.receivedSince(began - freshMs)) return true
    const late = Promise.withResolvers<void>()
    using _patience = afterAwake(Math.max(ms, 2 * this.#lastProbeMs), late.resolve)
    const answers = await Promise.race([
      this.probe(),
      // Bytes may have arrived that this process had no time to read.
      late.promise.then(turn).then(() => this.receivedSince(began)),
    ])
    if (!answers) this.#markUnresponsive()
    return answers
  }

  #markUnresponsive(): void {
    this.#unansweredAt = elapsed()
    for (const each of this.#waiting) each.giveUp()
  }

  /** To be called when it has answered a request. */
  answered(): void {
    this.receivedAt = elapsed()
    this.#outliers.answered()
  }

  /** A request sent at `began`, by the clock of `elapsed`, had no answer: probes at once. */
  failed(began: number): void {
    this.#outliers.failed(began)
    this.broken()
  }

  /** An answer of its own broke off: it may have been restarted, and is probed at once. */
  broken(): void {
    this.#failedAt = elapsed()
    // The probe that runs may have had its answer from before.
    const running = this.#probing
    if (running) void running.then((answers) => answers && this.#isInDoubt && this.probe())
    else void this.probe()
  }

  /** It may have been restarted: no probe has found it ready since it failed. */
  get #isInDoubt(): boolean {
    return this.#failedAt > this.#readyAt
  }

  /** It failed lately and is not ready yet: it may refuse what it allows later. */
  get isStarting(): boolean {
    return this.#isInDoubt && elapsed() - this.#failedAt < startMs
  }

  /** Whether it answered 401 to the last use of the hub's own credentials. */
  get refusesCredentials(): boolean {
    return this.#refusedBy !== undefined
  }

  /** Others are tried first; afterwards a request shows whether it accepts them again. */
  get #hasRefusedLately(): boolean {
    return this.refusesCredentials && elapsed() - this.#refusedAt < refusedMs
  }

  /**
   * The hub's own credentials were presented to it at `shownAt`, by the clock of `elapsed`. An
   * accepted request ends any refusal; an accepted probe ends only one that a probe has found as
   * well, since a gateway may answer probes in the API server's place. A use before the hub had its
   * present credentials does not count.
   */
  credentialsShown(accepted: boolean, by: CredentialUse, shownAt: number): void {
    if (shownAt < this.#renewedAt) return
    if (!accepted) this.#setRefused(by === 'probe' ? by : (this.#refusedBy ?? by))
    else if (by === 'request' || this.#refusedBy === 'probe') this.#setRefused(undefined)
  }

  /** The hub has other credentials: a probe shows whether these are refused as well. */
  credentialsRenewed(): void {
    this.#renewedAt = elapsed()
    // One that could not be reached may be reached with another CA.
    if (this.#refusedBy === undefined && this.health === 'healthy') return
    this.#setRefused(undefined)
    void this.probe()
  }

  #setRefused(by: CredentialUse | undefined): void {
    if (by !== undefined) this.#refusedAt = elapsed()
    const changed = (this.#refusedBy === undefined) !== (by === undefined)
    this.#refusedBy = by
    if (changed) this.#hooks.onCredentials?.(this)
  }

  /** Sets the rules, from the next probe on. */
  useRules(rules: HealthRules): void {
    this.#rules = rules
  }

  /**
   * Probes now, or joins the running probe. True where the upstream answered, even that it is not
   * ready, or sent other bytes meanwhile.
   */
  probe(): Promise<boolean> {
    this.#probing ??= this.#run().finally(() => {
      this.#probing = undefined
    })
    return this.#probing
  }

  async #run(): Promise<boolean> {
    const began = elapsed()
    const result = await this.#probe(this.origin, this.#rules.timeoutMs).then(
      () => this.#noteResult('healthy'),
      (error: Error) =>
        this.#noteResult(error instanceof NotReady ? 'unready' : 'unhealthy', error),
    )
    if (this.#closed) return result !== 'unhealthy'
    if (result === 'healthy') this.#readyAt = began
    if (result === 'healthy') this.credentialsShown(true, 'probe', began)
    else if (this.#lastError instanceof ProbeRefused) this.credentialsShown(false, 'probe', began)
    if (this.#lastError instanceof ProbeTimeout && this.receivedSince(began)) {
      this.#scheduleProbe(this.#restMs())
      return true
    }
    if (result !== 'unhealthy') {
      this.#unansweredAt = -Infinity
      this.#lastProbeMs = elapsed() - began
    } else if (this.#lastError instanceof ProbeTimeout) this.#markUnresponsive()
    if (this.#counts(result)) this.#count(result)
    return result !== 'unhealthy'
  }

  #noteResult(result: ProbeResult, error?: Error): ProbeResult {
    this.#lastError = error
    if (error) this.#noteFailure(error.message)
    return result
  }

  #noteFailure(message: string): void {
    const [last] = this.#failures
    const repeats = last?.message === message
    const failure = { message, at: now(), times: repeats ? last.times + 1 : 1 }
    this.#failures = [failure, ...this.#failures.slice(repeats ? 1 : 0)].slice(0, keptFailures)
  }

  #counts(result: ProbeResult): boolean {
    const repeats = result === this.#lastCounted
    return this.#due || !repeats || elapsed() - this.#countedAt >= (this.#rules.gapMs ?? closeMs)
  }

  #count(result: ProbeResult): void {
    this.#lastCounted = result
    this.#countedAt = elapsed()
    const before = this.health
    const changed = this.#hysteresis.count(result, this.#rules)
    if (changed !== undefined) this.#changeHealth(before, changed)
    this.#scheduleProbe(this.health === result ? this.#restMs() : closeMs)
  }

  /** At random: nodes that saw an upstream fail at the same moment must not probe it in step. */
  #restMs(): number {
    const { intervalMs } = this.#rules
    const soonMs = Math.max(firstRestMs, (elapsed() - this.#healthChangedAt) * outageShare)
    return (
      Math.min(intervalMs, this.health === 'unhealthy' ? soonMs : intervalMs) * jitter(0.8, 1.2)
    )
  }

  #scheduleProbe(inMs: number): void {
    this.#next?.[Symbol.dispose]()
    this.#due = false
    if (this.#closed) return
    this.#next = after(inMs, () => {
      this.#due = true
      void this.probe()
    })
  }

  #changeHealth(before: HealthStatus, health: ProbeResult): void {
    this.#healthChangedAt = elapsed()
    if (health === 'unhealthy') {
      this.#failedAt = elapsed()
      this.#stopAll(new UpstreamGone(this.origin))
    }
    if (health === 'healthy' && before !== 'unknown') this.#outliers.begin()
    this.#hooks.onHealth(this)
  }

  /** Ends its requests and its probes; no hook is called from then on. */
  close(): void {
    this.#closed = true
    this.#next?.[Symbol.dispose]()
    this.#stopAll(new UpstreamGone(this.origin))
  }

  #stopAll(reason: UpstreamGone): void {
    for (const each of this.underWay) each.stop(reason)
  }
}

/** Why an upstream's requests were stopped. */
export class UpstreamGone extends Error {
  readonly code = 'UPSTREAM_GONE'
  constructor(origin: string) {
    super(`${origin} is unhealthy, or was removed from the configuration`)
  }
}
