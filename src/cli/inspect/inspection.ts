import type { ExitCode } from '../command.ts'
import type { CommandFlag } from '../command-flags.ts'

/** What a sub-command of `nodehub inspect` reads from. */
export interface Inspected {
  /**
   * The report at `/inspect/<path>` of the running hub, as JSON. Rejects with a message for people.
   */
  report(path: string, options?: ReportOptions): Promise<unknown>
  /** The positional arguments after the name of the sub-command, as many as it takes. */
  readonly words: readonly string[]
  /** The values of the flags, those of the sub-command included. */
  flag(name: string): unknown
}

export interface ReportOptions {
  /** Sent as the body of a POST, as JSON. */
  readonly body?: unknown
}

/** One sub-command of `nodehub inspect`. */
export interface Inspection<Report> {
  /** Further lines of help, under the flags of all sub-commands. */
  readonly help?: string
  /** The positional arguments that it needs, as help texts name them; absent: none. */
  readonly takes?: readonly string[]
  readonly flags?: Readonly<Record<string, CommandFlag<unknown>>>
  /** Rejects with a message for people. */
  read(from: Inspected): Promise<Report>
  /** The report for people. */
  table(report: Report): string
  /** 1: the report shows that something is wrong; absent: it is never. */
  code?(report: Report): ExitCode
}

/** The same inspection; the compiler infers the type of its report. */
export const inspection = <Report>(one: Inspection<Report>): Inspection<Report> => one
