import { watchConfig } from '../config/config-watcher.ts'
import { SettingsInForce } from '../config/settings-in-force.ts'
import { options } from '../config/options.ts'
import { processSources } from '../config/process.ts'
import { after } from '../base/clock.ts'
import { RecentLines } from '../base/recent-items.ts'
import { hardenProcess } from './hardened-process.ts'
import { compiledIn, keepCompiledCode, keptMs } from './compiled-code.ts'
import { refuse, type Command, type ExitCode } from './command.ts'
import { dumpOnSignal } from './dump.ts'
import { endProcess, killLater } from './end-process.ts'
import { otherSources } from './flag-help.ts'
import { ensureMallocSettings, giveBackMemory, limitHeapGrowth } from './memory-settings.ts'
import { alsoTo, createLog, recentLogBounds, standardError } from './log.ts'
import { readWithFilters } from './read-with-filters.ts'
import { superviseHub } from './supervise.ts'
import { versionText } from './version.ts'

/** The interval of checks of the files of --config and --filter-module. */
const followMs = 5_000

/** By then a start, or the keeping of its code, is over. */
const startedMs = 10_000

export const start: Command = {
  usage: 'start --server-addr=https://HOST:PORT[,...] [FLAG...]',
  description: `Runs the hub on a node. All mistakes in flags, environment and file are reported together, with
exit code 2, before anything is opened. SIGTERM or SIGINT stops it gracefully, a second one at once.
SIGHUP reads the configuration again, as happens by itself when the file of --config or one of
--filter-module changes.
SIGQUIT writes what the process is doing to a file in --root-dir.
`,
  flags: options,
  afterFlags: otherSources,
  async run(argv, terminal) {
    if (argv.some((word) => /^--version(=true)?$/.test(word))) {
      terminal.out(versionText())
      return 0
    }
    const sources = processSources(argv)
    ensureMallocSettings(sources.env)
    const result = await readWithFilters(sources)
    if ('mistakes' in result) return refuse(terminal, 'start', result.mistakes)
    process.umask(0o077) // no other user may read keys and cached Secrets, from the first byte
    const sink = standardError()
    const recentLog = new RecentLines(recentLogBounds)
    const log = createLog(result.config.logLevel, alsoTo(recentLog, sink))
    const settings = new SettingsInForce(result)
    const exit = (code: ExitCode): Promise<never> => endProcess(code, sink)
    process.on('uncaughtException', (err) => {
      log.fatal({ err }, 'unhandled error: the process exits')
      void exit(1)
    })
    hardenProcess(log)
    dumpOnSignal(result.config.rootDir, log)
    for (const note of result.notes) log.warn(note)
    keepCompiledCode(compiledIn(result.config.rootDir))
    // V8 refuses kept code that was compiled under other flags: not before it is kept.
    after(keptMs, limitHeapGrowth)
    for (const ms of [startedMs, keptMs + startedMs]) after(ms, giveBackMemory)
    // Loaded after validation.
    const { startHub } = await import('../hub/hub.ts')
    // Forced, unlike other commands: a stopped hub must exit, even if a library holds handles.
    return exit(
      await superviseHub(result.config, {
        log,
        startHub: (config, options) =>
          startHub(config, { ...options, recentLog, settings: () => settings.report() }),
        signals: process,
        exit: (code) => void exit(code),
        killLater,
        follow: (listener) =>
          watchConfig(
            result,
            { sources, read: readWithFilters, intervalMs: followMs },
            {
              onRead: (change) => {
                settings.changed(change)
                listener.onRead(change)
              },
              onUnusable: (mistakes) => {
                settings.unusable(mistakes)
                listener.onUnusable(mistakes)
              },
            },
          ),
      }),
    )
  },
}
