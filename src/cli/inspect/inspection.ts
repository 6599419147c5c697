import type { ClientRequest } from 'node:http'
import type { OptionTable } from '../../config/option.ts'
import type { ExitCode } from '../command.ts'

/** The hub that a sub-command of `nodehub inspect` reads from. */
export interface Inspected {
  /**
   * The report at `/inspect/<path>` of the running hub, as JSON; with --root-dir that of a stopped
   * one, which may have parts of it only. Rejects with a message for people.
   */
  report<Report>(path: string): Promise<Report>
  /** The items of such a report, the last ones first and then each batch that is added. */
  follow(path: string): AsyncIterable<readonly object[]>
  /** A request to the operations port of the running hub, which the caller ends. */
  request(path: string): ClientRequest
  /** The positional arguments after the name of the sub-command, as many as it takes. */
  readonly words: readonly string[]
  /** The arguments after `--`, where the sub-command takes them; absent: there is no `--`. */
  readonly rest: readonly string[] | undefined
  /** Whether it is the state on the disk, of a hub that does not run. */
  readonly isStopped: boolean
  /** The values of the flags, those of the sub-command included. */
  flag(name: string): unknown
}

/** One sub-command of `nodehub inspect`. */
export interface Inspection<Report> {
  /** Further lines of help. */
  readonly help?: string
  /** The positional arguments that it needs, as help texts name them; absent: none. */
  readonly takes?: readonly string[]
  /** It takes arguments after `--`, which help texts name so; absent: it does not. */
  readonly takesRest?: string
  readonly flags?: OptionTable
  /** Whether it has a report of a stopped hub as well; absent: it is about a running one. */
  readonly ofStopped?: true
  /** Whether it does more than report: it is not repeated, and in no bundle. */
  readonly acts?: true
  /** Rejects with a message for people. */
  read(from: Inspected): Promise<Report>
  /** The report for people. */
  table(report: Report): string
  /** With `--watch` the items of the report at `path` are printed as they come. */
  readonly tail?: {
    readonly path: (from: Inspected) => string
    readonly table: (items: readonly object[]) => string
  }
  /** 1: the report shows that something is wrong; absent: it is never. */
  code?(report: Report): ExitCode
}

/** The same inspection; the compiler infers the type of its report. */
export const inspection = <Report>(one: Inspection<Report>): Inspection<Report> => one

/** A sub-command before its module is loaded. */
export interface InspectionEntry {
  readonly summary: string
  /** Loaded when it runs, as commands are. */
  readonly load: () => Promise<Inspection<unknown>>
}
