import type { Logger } from 'pino'
import { after } from '../base/clock.ts'
import { isExpectedFault } from '../base/expected-fault.ts'
import { ownVersion } from '../base/own-version.ts'
import type { HubConfig, LiveConfig } from '../config/config.ts'
import {
  waitsForNextStart,
  type ConfigWatcher,
  type ConfigListener,
  type ConfigChange,
} from '../config/config-watcher.ts'
import type { ExitCode } from './command.ts'
import type { Reloaded } from '../hub/hub.ts'
import type { Predecessor } from './predecessor.ts'
import type { ConfigWithFilters } from './read-with-filters.ts'
import type { OpenSocket, Successor } from './successor.ts'

/** A hub at work. Disposing of it drains what is under way and lets go of everything. */
export interface RunningHub extends AsyncDisposable {
  /** Resolves once it has stopped; rejects when it cannot go on. */
  readonly closed: Promise<void>
  /** Where it listens. */
  readonly sockets: readonly OpenSocket[]
  /**
   * Resolves when another process can serve in its place; what lasts and needs nobody else goes on
   * until it is disposed of.
   */
  release(): Promise<void>
  /** Goes over to another configuration, in what can be changed while it runs. */
  reconfigure(live: LiveConfig, read: Reloaded): void
  /** Is told that the configuration has become unusable. */
  rejectConfig(mistakes: readonly string[]): void
}

export interface StartOptions {
  readonly log: Logger
  /**
   * Resolves when no other process keeps its state where this hub is to; called when all else is
   * known to be well.
   */
  readonly storeReleased?: () => Promise<void>
}

export type StartHub = (config: HubConfig, options: StartOptions) => Promise<RunningHub>

export type Signal = 'SIGTERM' | 'SIGINT' | 'SIGUSR2' | 'SIGHUP'

/** What tells the process what to do. */
export interface Signals {
  on(signal: Signal, act: (signal: string) => void): unknown
  off(signal: Signal, act: (signal: string) => void): unknown
}

export interface Supervision {
  readonly log: Logger
  readonly startHub: StartHub
  readonly signals: Signals
  /** Ends the process at once, but for its last lines. */
  readonly exit: (code: ExitCode) => void
  /** Has the process killed after `ms`, whatever it does then. */
  readonly killLater: (ms: number) => void
  /** The process that this one takes over from, if any. */
  readonly predecessor?: Predecessor | undefined
  /**
   * Starts the process that is to take over from this one, with its sockets; or says why there can
   * be none.
   */
  readonly succeed: (sockets: readonly OpenSocket[]) => Successor | { readonly impossible: string }
  /** Reads the configuration again when it changes. */
  readonly follow: (listener: ConfigListener<ConfigWithFilters>) => ConfigWatcher
}

/**
 * What a graceful stop may take beyond the grace period itself, to close the store and the like.
 */
const closingMs = 4000

/** By when a process that was to exit by itself, and does not, is killed. */
const exitingMs = 3000

/**
 * Starts the hub and waits until it has stopped: by itself, by a signal, or because the next
 * process serves in its place.
 */
export async function superviseHub(first: HubConfig, supervision: Supervision): Promise<ExitCode> {
  const { log, startHub, predecessor } = supervision
  let config = first
  const patienceOf = (): number => config.shutdownGracePeriodMs + closingMs
  using wishes = new SignalRequests(supervision, patienceOf)
  try {
    log.info({ version: ownVersion(), node: config.nodeName }, 'starting')
    let hub = await startHub(config, {
      log,
      ...(predecessor && { storeReleased: () => predecessor.released() }),
    })
    predecessor?.serving()
    using follower = supervision.follow({
      onRead: (news) => {
        const { live, waiting, read } = news
        config = { ...config, ...live }
        log.level = live.logLevel
        hub.reconfigure(live, { filters: read.filters, waiting })
        tell(news, log)
      },
      onUnusable: (mistakes) => {
        hub.rejectConfig(mistakes)
        log.error({ mistakes }, 'the configuration cannot be used; the last good one stays')
      },
    })
    wishes.onReread = () => follower.read()
    for (;;) {
      const wish = await nextWish(hub, wishes, log)
      const next = wish === 'hand over' ? await prepared(hub, wishes, supervision) : undefined
      if (wish === 'hand over' && next === undefined) continue
      const patienceMs = patienceOf()
      if (next === undefined) {
        const late = await stopped(hub, patienceMs, log)
        return wish === 'failed' || late ? 1 : 0
      }
      // Where it is late, the end of this process is what the next one waits for.
      if (await isLate(hub.release(), patienceMs, log)) return 1
      if (await next.takeOver()) {
        log.info({ pid: next.pid }, 'the next process serves')
        await Promise.race([stopped(hub, patienceMs, log), wishes.stop])
        return 0
      }
      log.error(
        { pid: next.pid },
        'the next process failed after it was ready: this one serves again',
      )
      const before = hub
      hub = await startHub({ ...config, sockets: next.returnedSockets }, { log })
      stopped(before, patienceMs, log).catch((err: unknown) => {
        log.error({ err }, 'what was left of the hub before did not stop well')
      })
    }
  } catch (err) {
    // What an operator can mend is said in a line; a stack is for what was not foreseen.
    if (err instanceof Error && isExpectedFault(err))
      log.fatal({ code: (err as NodeJS.ErrnoException).code }, `the hub cannot run: ${err.message}`)
    else log.fatal({ err }, 'the hub cannot run')
    return 1
  }
}

type LifecycleRequest = 'stop' | 'hand over'

/** What signals ask for. */
class SignalRequests implements Disposable {
  /** Resolves with the first signal that tells the hub to stop. */
  readonly stop: Promise<string>
  readonly #off: () => void
  /** Called when the configuration is to be read again. */
  onReread: () => void = () => undefined
  #handOver = Promise.withResolvers<LifecycleRequest>()
  #late: Disposable | undefined

  /**
   * `patienceMs`: how long the hub may take to stop. What takes longer is cut off, even a start
   * that a signal finds under way.
   */
  constructor({ log, signals, exit, killLater }: Supervision, patienceMs: () => number) {
    const { promise, resolve } = Promise.withResolvers<string>()
    this.stop = promise
    let stopping = false
    const onStop = (signal: string): void => {
      if (stopping) {
        log.warn({ signal }, 'told a second time to stop: stopping at once')
        exit(1)
      }
      stopping = true
      const ms = patienceMs()
      killLater(ms + exitingMs)
      this.#late = after(ms, () => {
        log.error({ ms }, 'did not stop in time: stopping at once')
        exit(1)
      })
      resolve(signal)
    }
    const onHandOver = (): void => this.#handOver.resolve('hand over')
    signals.on('SIGTERM', onStop)
    signals.on('SIGINT', onStop)
    signals.on('SIGUSR2', onHandOver)
    const onReread = (): void => this.onReread()
    signals.on('SIGHUP', onReread)
    this.#off = () => {
      signals.off('SIGTERM', onStop)
      signals.off('SIGINT', onStop)
      signals.off('SIGUSR2', onHandOver)
      signals.off('SIGHUP', onReread)
    }
  }

  /** Resolves when the hub is to hand over, after having been asked for since the last time. */
  handOver(): Promise<LifecycleRequest> {
    return this.#handOver.promise
  }

  /** What was asked for has been seen to. */
  handled(): void {
    this.#handOver = Promise.withResolvers()
  }

  [Symbol.dispose](): void {
    this.#late?.[Symbol.dispose]()
    this.#off()
  }
}

/** Says what reading the configuration again has changed. */
function tell(
  { changed, unreported: untold, notes }: ConfigChange<ConfigWithFilters>,
  log: Logger,
): void {
  for (const note of notes) log.warn(note)
  log.info({ changed }, 'the configuration was read again')
  if (untold.length > 0) log.warn(waitsForNextStart(untold))
}

/** What is to become of the hub, once it has failed or somebody wishes something of it. */
async function nextWish(
  hub: RunningHub,
  wishes: SignalRequests,
  log: Logger,
): Promise<LifecycleRequest | 'failed'> {
  try {
    const wish = await Promise.race([
      wishes.stop.then((signal) => ({ signal })),
      wishes.handOver(),
      hub.closed.then(() => ({ signal: undefined })),
    ])
    if (typeof wish === 'string') return wish
    log.info(wish, 'stopping')
    return 'stop'
  } catch (err) {
    log.fatal({ err }, 'the hub cannot go on')
    return 'failed'
  }
}

/**
 * A process that is ready to take over; `undefined` where none is, and this one serves as before.
 */
async function prepared(
  hub: RunningHub,
  wishes: SignalRequests,
  { log, succeed }: Supervision,
): Promise<Successor | undefined> {
  const next = succeed(hub.sockets)
  if ('impossible' in next) {
    log.error(`cannot hand over: ${next.impossible}`)
    wishes.handled()
    return undefined
  }
  log.info({ pid: next.pid }, 'the next process starts')
  const failure = await Promise.race([
    next.ready(),
    wishes.stop.then(() => 'this one was told to stop'),
  ])
  wishes.handled()
  if (failure === undefined) {
    log.info({ pid: next.pid }, 'the next process is ready')
    return next
  }
  next.kill()
  log.error({ pid: next.pid }, `the next process cannot take over, this one serves on: ${failure}`)
  return undefined
}

/** Disposes of the hub, but for no longer than `ms`; resolves to whether it was late. */
async function stopped(hub: RunningHub, ms: number, log: Logger): Promise<boolean> {
  const late = await isLate(hub[Symbol.asyncDispose](), ms, log)
  if (!late) log.info('stopped')
  return late
}

/** Waits for the end of what stops, but for no longer than `ms`. */
async function isLate(end: PromiseLike<void>, ms: number, log: Logger): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<'late'>()
  using _ = after(ms, () => resolve('late'))
  const late = (await Promise.race([end, promise])) === 'late'
  if (late) log.error({ ms }, 'did not stop in time')
  return late
}
