import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'

/**
 * On SIGUSR1 the process writes what it is doing (stacks, memory, what it holds open) to `nodehub.<pid>.report.json` in `folder`, as
 * yurthub does. Without the environment, which may hold secrets. Left to itself, Node would open its debugger on that signal, to whoever
 * reaches loopback.
 */
export function dumpOnSignal(folder: string, log: Logger): void {
  // Names of peers are not looked up: that may take minutes where there is no link.
  Object.assign(process.report, { excludeEnv: true, excludeNetwork: true })
  process.on('SIGUSR1', () => {
    const file = join(folder, `nodehub.${process.pid}.report.json`)
    try {
      // Not writeReport, which tells standard error of it in its own words, between lines of JSON.
      writeFileSync(file, JSON.stringify(process.report.getReport(), undefined, 2), { mode: 0o600 })
      log.info({ file }, 'wrote what the process is doing')
    } catch (err) {
      log.error({ err, file }, 'what the process is doing cannot be written')
    }
  })
}
