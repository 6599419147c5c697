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
import { closingMs, exitingMs } from './end-process.ts'
import type { Reloaded } from '../hub/hub.ts'
import type { Predecessor } from './predecessor.ts'
import type { ConfigWithFilters } from './read-with-filters.ts'
import type { OpenSocket, Successor } from './successor.ts'

/** A running hub. Disposing drains requests in flight and releases everything. */
export interface RunningHub extends AsyncDisposable {
  /** Resolves once it has stopped; rejects if it fails. */
  readonly closed: Promise<void>
  /** Its listening sockets. */
  readonly sockets: readonly OpenSocket[]
  /** Resolves when a successor can serve; long-running requests continue until disposal. */
  release(): Promise<void>
  /** Applies another live configuration. */
  reconfigure(live: LiveConfig, read: Reloaded): void
  /** The configuration has become unusable; the last valid one stays in force. */
  rejectConfig(mistakes: readonly string[]): void
}

export interface StartOptions {
  readonly log: Logger
  /** Resolves when no other process uses the hub's store; called when everything else is ready. */
  readonly storeReleased?: () => Promise<void>
}

export type StartHub = (config: HubConfig, options: StartOptions) => Promise<RunningHub>

export type Signal = 'SIGTERM' | 'SIGINT' | 'SIGUSR2' | 'SIGHUP'

/** The signals of the process. */
export interface Signals {
  on(signal: Signal, act: (signal: string) => void): unknown
  off(signal: Signal, act: (signal: string) => void): unknown
}

export interface Supervision {
  readonly log: Logger
  readonly startHub: StartHub
  readonly signals: Signals
  /** Ends the process at once, after its last log lines. */
  readonly exit: (code: ExitCode) => void
  /** Kills the process after `ms` unconditionally. */
  readonly killLater: (ms: number) => void
  /** The process that this one replaces, if any. */
  readonly predecessor?: Predecessor | undefined
  /** Starts the successor with this process's sockets, or returns why there can be none. */
  readonly succeed: (sockets: readonly OpenSocket[]) => Successor | { readonly impossible: string }
  /** Watches the configuration. */
  readonly follow: (listener: ConfigListener<ConfigWithFilters>) => ConfigWatcher
}

/**
 * Starts the hub and waits until it has stopped: by itself, by a signal, or because its successor
 * serves.
 */
export async function superviseHub(first: HubConfig, supervision: Supervision): Promise<ExitCode> {
  const { log, startHub, predecessor } = supervision
  let config = first
  const patienceOf = (): number => config.shutdownGracePeriodMs + closingMs
  using requests = new SignalRequests(supervision, patienceOf)
  try {
    log.info({ version: ownVersion(), node: config.nodeName }, 'starting')
    let hub = await startHub(config, {
      log,
      ...(predecessor && { storeReleased: () => predecessor.released() }),
    })
    predecessor?.serving()
    using follower = supervision.follow({
      onRead: (change) => {
        const { live, waiting, read } = change
        config = { ...config, ...live }
        log.level = live.logLevel
        hub.reconfigure(live, { filters: read.filters, waiting })
        logChanges(change, log)
      },
      onUnusable: (mistakes) => {
        hub.rejectConfig(mistakes)
        log.error({ mistakes }, 'the configuration cannot be used; the last good one stays')
      },
    })
    requests.onReread = () => follower.read()
    for (;;) {
      const request = await nextRequest(hub, requests, log)
      const next =
        request === 'hot restart' ? await prepared(hub, requests, supervision) : undefined
      if (request === 'hot restart' && next === undefined) continue
      const patienceMs = patienceOf()
      if (next === undefined) {
        const late = await stopped(hub, patienceMs, log)
        return request === 'failed' || late ? 1 : 0
      }
      // If it is late, this process exits, which releases the rest.
      if (await isLate(hub.release(), patienceMs, log)) return 1
      if (await next.takeOver()) {
        log.info({ pid: next.pid }, 'the next process serves')
        await Promise.race([stopped(hub, patienceMs, log), requests.stop])
        return 0
      }
      log.error(
        { pid: next.pid },
        'the next process failed after it was ready: this one serves again',
      )
      const before = hub
      hub = await startHub({ ...config, sockets: next.returnedSockets }, { log })
      stopped(before, patienceMs, log).catch((err: unknown) => {
        log.error({ err }, 'the previous hub did not stop cleanly')
      })
    }
  } catch (err) {
    // An expected fault is logged without a stack.
    if (err instanceof Error && isExpectedFault(err))
      log.fatal({ code: (err as NodeJS.ErrnoException).code }, `the hub cannot run: ${err.message}`)
    else log.fatal({ err }, 'the hub cannot run')
    return 1
  }
}

type LifecycleRequest = 'stop' | 'hot restart'

/** The requests of signals. */
class SignalRequests implements Disposable {
  /** Resolves with the first signal to stop. */
  readonly stop: Promise<string>
  readonly #off: () => void
  /** Called on SIGHUP, to read the configuration again. */
  onReread: () => void = () => undefined
  #hotRestart = Promise.withResolvers<LifecycleRequest>()
  #late: Disposable | undefined

  /**
   * `patienceMs`: how long the hub may take to stop. After that the process exits, even while it
   * starts.
   */
  constructor({ log, signals, exit, killLater }: Supervision, patienceMs: () => number) {
    const { promise, resolve } = Promise.withResolvers<string>()
    this.stop = promise
    let stopping = false
    const onStop = (signal: string): void => {
      if (stopping) {
        log.warn({ signal }, 'second signal to stop: stopping at once')
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
    const onHotRestart = (): void => this.#hotRestart.resolve('hot restart')
    signals.on('SIGTERM', onStop)
    signals.on('SIGINT', onStop)
    signals.on('SIGUSR2', onHotRestart)
    const onReread = (): void => this.onReread()
    signals.on('SIGHUP', onReread)
    this.#off = () => {
      signals.off('SIGTERM', onStop)
      signals.off('SIGINT', onStop)
      signals.off('SIGUSR2', onHotRestart)
      signals.off('SIGHUP', onReread)
    }
  }

  /** Resolves when a hot restart is requested. */
  hotRestart(): Promise<LifecycleRequest> {
    return this.#hotRestart.promise
  }

  /** The request for a hot restart has been handled. */
  handled(): void {
    this.#hotRestart = Promise.withResolvers()
  }

  [Symbol.dispose](): void {
    this.#late?.[Symbol.dispose]()
    this.#off()
  }
}

/** Logs the changes of a reload. */
function logChanges(
  { changed, unreported, notes }: ConfigChange<ConfigWithFilters>,
  log: Logger,
): void {
  for (const note of notes) log.warn(note)
  log.info({ changed }, 'the configuration was read again')
  if (unreported.length > 0) log.warn(waitsForNextStart(unreported))
}

/** The next request for the hub, or its failure. */
async function nextRequest(
  hub: RunningHub,
  requests: SignalRequests,
  log: Logger,
): Promise<LifecycleRequest | 'failed'> {
  try {
    const request = await Promise.race([
      requests.stop.then((signal) => ({ signal })),
      requests.hotRestart(),
      hub.closed.then(() => ({ signal: undefined })),
    ])
    if (typeof request === 'string') return request
    log.info(request, 'stopping')
    return 'stop'
  } catch (err) {
    log.fatal({ err }, 'the hub cannot go on')
    return 'failed'
  }
}

/** A successor that is ready; `undefined` if there is none, and this process continues to serve. */
async function prepared(
  hub: RunningHub,
  requests: SignalRequests,
  { log, succeed }: Supervision,
): Promise<Successor | undefined> {
  const next = succeed(hub.sockets)
  if ('impossible' in next) {
    log.error(`cannot hand over: ${next.impossible}`)
    requests.handled()
    return undefined
  }
  log.info({ pid: next.pid }, 'the next process starts')
  const failure = await Promise.race([
    next.ready(),
    requests.stop.then(() => 'this process is stopping'),
  ])
  requests.handled()
  if (failure === undefined) {
    log.info({ pid: next.pid }, 'the next process is ready')
    return next
  }
  next.kill()
  log.error({ pid: next.pid }, `the next process cannot take over, this one serves on: ${failure}`)
  return undefined
}

/** Disposes of the hub within `ms`; resolves to whether it was late. */
async function stopped(hub: RunningHub, ms: number, log: Logger): Promise<boolean> {
  const late = await isLate(hub[Symbol.asyncDispose](), ms, log)
  if (!late) log.info('stopped')
  return late
}

/** Waits for `end`, at most `ms`. */
async function isLate(end: PromiseLike<void>, ms: number, log: Logger): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<'late'>()
  using _ = after(ms, () => resolve('late'))
  const late = (await Promise.race([end, promise])) === 'late'
  if (late) log.error({ ms }, 'did not stop in time')
  return late
}
