import { join } from 'node:path'
import type { Logger } from 'pino'
import { writeDurablySync } from '../base/durable-file.ts'

/**
 * On SIGQUIT the process writes what it is doing (stacks, memory, what it holds open) to
 * `nodehub.<pid>.report.json` in `folder`, and goes on; without the environment, which may hold
 * secrets. On SIGUSR1, too, as yurthub does, where Node was started without `--disable-sigusr1`:
 * with it that signal never arrives, and without it Node's debugger is open to every program of the
 * host until somebody listens for it.
 */
export function dumpOnSignal(folder: string, log: Logger): void {
  // Names of peers are not looked up: that may take minutes where there is no link.
  Object.assign(process.report, { excludeEnv: true, excludeNetwork: true })
  const write = (): void => {
    const file = join(folder, `nodehub.${process.pid}.report.json`)
    try {
      // Not writeReport, which tells standard error of it in its own words, between lines of JSON.
      writeDurablySync(file, JSON.stringify(process.report.getReport(), undefined, 2))
      log.info({ file }, 'wrote what the process is doing')
    } catch (err) {
      log.error({ err, file }, 'what the process is doing cannot be written')
    }
  }
  for (const signal of ['SIGQUIT', 'SIGUSR1'] as const) process.on(signal, write)
}
