import type { Logger } from 'pino'
import { after } from '../base/clock.ts'
import { ownVersion } from '../base/own-version.ts'
import { readConfig, type HubConfig } from '../config/config.ts'
import { processSources } from '../config/process.ts'
import { CannotListen } from '../server/listening.ts'
import { refuse, type Command, type ExitCode } from './command.ts'
import { elsewhere, flagHelp } from './flag-help.ts'
import { createLog, standardError } from './log.ts'
import { versionText } from './version.ts'

/** A hub at work. Disposing of it drains what is under way and lets go of everything. */
export interface RunningHub extends AsyncDisposable {
  /** Resolves once it has stopped; rejects when it cannot go on. */
  readonly closed: Promise<void>
}

export type StartHub = (config: HubConfig, options: { readonly log: Logger }) => Promise<RunningHub>

/** What tells the process to stop. */
export interface Signals {
  on(signal: 'SIGTERM' | 'SIGINT', act: (signal: string) => void): unknown
  off(signal: 'SIGTERM' | 'SIGINT', act: (signal: string) => void): unknown
}

export const start: Command = {
  help: () => `Usage: nodehub start --server-addr=https://HOST:PORT[,...] [FLAG...]

Runs the hub on a node. All mistakes in flags, environment and file are reported together, with
exit code 2, before anything is opened. SIGTERM or SIGINT stops it gracefully, a second one at once.

${flagHelp()}
${elsewhere}`,
  async run(argv, terminal) {
    if (argv.some((word) => /^--version(=true)?$/.test(word))) {
      terminal.out(versionText())
      return 0
    }
    const result = readConfig(processSources(argv))
    if ('mistakes' in result) return refuse(terminal, 'start', result.mistakes)
    process.umask(0o077) // keys and cached Secrets are nobody else's, from the first byte
    const sink = standardError()
    const log = createLog(result.config.logLevel, sink)
    process.on('exit', () => sink.flush())
    process.on('uncaughtException', (err) => {
      log.fatal({ err }, 'a failure nobody handled')
      process.exit(1)
    })
    for (const note of result.notes) log.warn(note)
    const { startHub } = await import('../hub.ts') // not needed to say what is wrong with a flag
    const exit = (code: ExitCode): never => process.exit(code)
    // Forced, unlike other commands: a hub that has stopped must be gone, whatever a library still holds open.
    return exit(await superviseHub(result.config, { log, startHub, signals: process, exit }))
  },
}

export interface Supervision {
  readonly log: Logger
  readonly startHub: StartHub
  readonly signals: Signals
  /** Ends the process at once. */
  readonly exit: (code: ExitCode) => void
}

/** What a graceful stop may take beyond the grace period itself: closing the store, flushing. */
const closingMs = 5000

/** Starts the hub and waits until it has stopped, by itself or by a signal. */
export async function superviseHub(
  config: HubConfig,
  { log, startHub, signals, exit }: Supervision,
): Promise<ExitCode> {
  const told = Promise.withResolvers<string>()
  let stopping = false
  const onSignal = (signal: string): void => {
    if (stopping) {
      log.warn({ signal }, 'told again: stopping at once')
      exit(1)
    }
    stopping = true
    told.resolve(signal)
  }
  signals.on('SIGTERM', onSignal)
  signals.on('SIGINT', onSignal)
  try {
    log.info({ version: ownVersion(), node: config.nodeName }, 'starting')
    const hub = await startHub(config, { log })
    const failed = await untilOver(hub, told.promise, log)
    const late = await stopped(hub, config.shutdownGracePeriodMs + closingMs, log)
    return failed || late ? 1 : 0
  } catch (err) {
    // What an operator can mend is said in a line; a stack is for what nobody foresaw.
    if (err instanceof CannotListen)
      log.fatal({ code: err.code }, `the hub cannot run: ${err.message}`)
    else log.fatal({ err }, 'the hub cannot run')
    return 1
  } finally {
    signals.off('SIGTERM', onSignal)
    signals.off('SIGINT', onSignal)
  }
}

/** Whether the hub failed, once it has, or once it is told to stop. */
async function untilOver(hub: RunningHub, told: Promise<string>, log: Logger): Promise<boolean> {
  try {
    const signal = await Promise.race([told, hub.closed])
    log.info({ signal }, 'stopping')
    return false
  } catch (err) {
    log.fatal({ err }, 'the hub cannot go on')
    return true
  }
}

/** Disposes of the hub, but for no longer than `ms`; resolves to whether it was late. */
async function stopped(hub: RunningHub, ms: number, log: Logger): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<'late'>()
  using _ = after(ms, () => resolve('late'))
  const late = (await Promise.race([hub[Symbol.asyncDispose](), promise])) === 'late'
  if (late) log.error({ ms }, 'did not stop in time')
  else log.info('stopped')
  return late
}
