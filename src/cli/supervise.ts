import type { EventEmitter } from 'node:events'
import type { Logger } from 'pino'
import { after } from '../base/clock.ts'
import { isExpectedFault } from '../base/expected-fault.ts'
import { ownVersion } from '../base/own-version.ts'
import type { HubConfig } from '../config/config.ts'
import {
  waitsForNextStart,
  type ConfigWatcher,
  type ConfigListener,
  type ConfigChange,
} from '../config/config-watcher.ts'
import type { ExitCode } from './command.ts'
import { closingMs, exitingMs } from './end-process.ts'
import type { Hub } from '../hub/hub.ts'
import type { ConfigWithFilters } from './read-with-filters.ts'

/** A running hub. Disposing drains requests in flight and releases everything. */
export type RunningHub = Pick<Hub, 'reconfigure' | 'rejectConfig'> & AsyncDisposable

export type StartHub = (config: HubConfig, options: { readonly log: Logger }) => Promise<RunningHub>

type Signal = 'SIGTERM' | 'SIGINT' | 'SIGUSR2' | 'SIGHUP'

/** The signals of the process. */
type Signals = Pick<EventEmitter, 'on' | 'off'>

export interface Supervision {
  readonly log: Logger
  readonly startHub: StartHub
  readonly signals: Signals
  /** Ends the process at once, after its last log lines. */
  readonly exit: (code: ExitCode) => void
  /** Kills the process after `ms` unconditionally. */
  readonly killLater: (ms: number) => void
  /** Watches the configuration. */
  readonly follow: (listener: ConfigListener<ConfigWithFilters>) => ConfigWatcher
}

/** Starts the hub, and stops it at a signal. */
export async function superviseHub(first: HubConfig, supervision: Supervision): Promise<ExitCode> {
  const { log, startHub } = supervision
  let config = first
  const patienceOf = (): number => config.shutdownGracePeriodMs + closingMs
  using requests = new StopRequests(supervision, patienceOf)
  let onReread = (): void => undefined
  using heeding = new DisposableStack()
  heeding.defer(
    heeded(supervision.signals, {
      SIGHUP: () => onReread(),
      // Otherwise a script that restarted the hub so far would end it.
      SIGUSR2: () => log.warn('SIGUSR2 has no effect any more: restart the hub by what runs it'),
    }),
  )
  try {
    log.info({ version: ownVersion(), node: config.nodeName }, 'starting')
    const hub = await startHub(config, { log })
    using follower = supervision.follow({
      onRead: (change) => {
        const { waiting, read } = change
        config = read.config
        log.level = config.logLevel
        hub.reconfigure(config, { filters: read.filters, waiting })
        logChanges(change, log)
      },
      onUnusable: (mistakes) => {
        hub.rejectConfig(mistakes)
        log.error({ mistakes }, 'the configuration cannot be used; the last good one stays')
      },
    })
    onReread = () => follower.read()
    log.info({ signal: await requests.stop }, 'stopping')
    return (await stopsLate(hub, patienceOf(), log)) ? 1 : 0
  } catch (err) {
    // An expected fault is logged without a stack.
    if (err instanceof Error && isExpectedFault(err))
      log.fatal({ code: (err as NodeJS.ErrnoException).code }, `the hub cannot run: ${err.message}`)
    else log.fatal({ err }, 'the hub cannot run')
    return 1
  }
}

/** The signals that stop a process. */
export class StopRequests implements Disposable {
  /** Resolves with the first signal to stop. */
  readonly stop: Promise<string>
  readonly #off: () => void
  #late: Disposable | undefined

  /**
   * `patienceMs`: how long it may take to stop. After that the process exits, even while it starts.
   */
  constructor(
    { log, signals, exit, killLater }: Pick<Supervision, 'log' | 'signals' | 'exit' | 'killLater'>,
    patienceMs: () => number,
  ) {
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
    this.#off = heeded(signals, { SIGTERM: onStop, SIGINT: onStop })
  }

  [Symbol.dispose](): void {
    this.#late?.[Symbol.dispose]()
    this.#off()
  }
}

/** Calls these at signals; returns what ends that. */
function heeded(
  signals: Signals,
  acts: Readonly<Partial<Record<Signal, (signal: string) => void>>>,
): () => void {
  const all = Object.entries(acts) as [Signal, (signal: string) => void][]
  for (const [signal, act] of all) signals.on(signal, act)
  return () => {
    for (const [signal, act] of all) signals.off(signal, act)
  }
}

/** Logs the changes of a reload. */
function logChanges(
  { changed, waiting, notes }: ConfigChange<ConfigWithFilters>,
  log: Logger,
): void {
  for (const note of notes) log.warn(note)
  log.info({ changed }, 'the configuration was read again')
  if (waiting.length > 0) log.warn(waitsForNextStart(waiting))
}

/** Disposes of the hub; resolves to whether that has not ended within `ms`. */
async function stopsLate(hub: RunningHub, ms: number, log: Logger): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<'late'>()
  using _ = after(ms, () => resolve('late'))
  const isLate = (await Promise.race([hub[Symbol.asyncDispose](), promise])) === 'late'
  if (isLate) log.error({ ms }, 'did not stop in time')
  else log.info('stopped')
  return isLate
}
