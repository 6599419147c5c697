import { join } from 'node:path'
import type { Logger } from 'pino'
import { writeDurablySync } from '../base/durable-file.ts'

/**
 * On SIGQUIT the process writes a report (stacks, memory, open handles) to
 * `nodehub.<pid>.report.json` in `folder`, and continues; without the environment, which may hold
 * secrets. On SIGUSR1 too, as yurthub does, if Node was started without `--disable-sigusr1`: with
 * it the signal never arrives, and without it any program of the host could open Node's debugger
 * unless a handler is installed.
 */
export function dumpOnSignal(folder: string, log: Logger): void {
  // Does not resolve names of peers, which may take minutes without a link.
  Object.assign(process.report, { excludeEnv: true, excludeNetwork: true })
  const write = (): void => {
    const file = join(folder, `nodehub.${process.pid}.report.json`)
    try {
      // Not writeReport, which prints a line to standard error between lines of JSON.
      writeDurablySync(file, JSON.stringify(process.report.getReport(), undefined, 2))
      log.info({ file }, 'wrote what the process is doing')
    } catch (err) {
      log.error({ err, file }, 'what the process is doing cannot be written')
    }
  }
  for (const signal of ['SIGQUIT', 'SIGUSR1'] as const) process.on(signal, write)
}
