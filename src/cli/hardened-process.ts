import { writeFileSync } from 'node:fs'
import type { Logger } from 'pino'
import { optionsOfNode } from '../config/process.ts'

/**
 * Node options that open a process to others or write its memory to files: it holds keys and
 * tokens.
 */
const revealing =
  /^--(?:inspect|heapsnapshot-|heap-prof|cpu-prof|report-|diagnostic-dir|abort-on-uncaught-exception)/

/**
 * Keeps this process's memory from others as far as a process can: core dumps omit memory
 * (core(5)), in place of a limit, which Node cannot set, and Node writes no reports by itself.
 * Revealing options are logged and stay: an operator has a reason for them, or an attacker is in
 * the process already.
 */
export function hardenProcess(log: Logger): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0')
  } catch (err) {
    log.debug({ err }, 'a core dump of this process would hold its memory')
  }
  Object.assign(process.report, {
    excludeEnv: true,
    reportOnFatalError: false,
    reportOnSignal: false,
    reportOnUncaughtException: false,
  })
  for (const option of revealingOptions(optionsOfNode()))
    log.warn(`Node was started with ${option}, which can show others the hub's keys and tokens`)
}

/** The given Node options that reveal the process's memory. */
export const revealingOptions = (given: readonly string[]): readonly string[] =>
  given.filter((option) => revealing.test(option.replaceAll('_', '-').replaceAll('"', '')))
