import { writeFileSync } from 'node:fs'
import type { Logger } from 'pino'
import { optionsOfNode } from '../config/process.ts'

/**
 * Options by which Node lets others into a process, or writes what it holds to files. Keys and
 * tokens are in the memory of this one.
 */
const revealing =
  /^--(?:inspect|heapsnapshot-|heap-prof|cpu-prof|report-|diagnostic-dir|abort-on-uncaught-exception)/

/**
 * Sees to it that this process shows no other what it holds, as far as a process can: a core dump
 * has no memory in it (core(5)), in place of a limit, which Node cannot set, and Node writes no
 * reports by itself. Options that reveal more are said in the log, and stay: who sets them has a
 * reason, or is in the process already.
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

/** Those of Node's options that reveal what a process holds, as they were given. */
export const revealingOptions = (given: readonly string[]): readonly string[] =>
  given.filter((option) => revealing.test(option.replaceAll('_', '-').replaceAll('"', '')))
