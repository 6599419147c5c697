import type { OptionTable } from '../config/option.ts'

/** How a command ends: 0, success; 1, a failure while running; 2, invalid arguments. */
export type ExitCode = 0 | 1 | 2

/** Where a command writes: results to `out`; errors and notes for the operator to `err`. */
export interface Terminal {
  out(text: string): void
  err(text: string): void
}

/** A command, or a subcommand: its help, its part of the manual and of completion are of this. */
export interface Command {
  /** What is typed, without the name of the program, a line for each form. */
  readonly usage: string
  /** What it does, in lines of at most 100 characters. */
  readonly description: string
  readonly flags?: OptionTable
  /** The command whose flags these are, and whose help has them. */
  readonly flagsOf?: string
  /** What the help says after the flags. */
  readonly afterFlags?: string
  /** Names that `load` takes as well. */
  readonly subcommands?: readonly string[]
  /** One of these words has to follow. */
  readonly words?: readonly string[]
  /** File names may follow. */
  readonly files?: true
  run(argv: readonly string[], terminal: Terminal): Promise<ExitCode>
}

/** A command before it is loaded. */
export interface CommandEntry {
  readonly summary: string
  /**
   * The command, or the subcommand that `argv` names. Loaded when it runs: `version` does not load
   * a hub's modules.
   */
  readonly load: (argv: readonly string[]) => Promise<Command>
}

/** What is typed for a command, with its subcommand if any. */
export function programName(command: string): string {
  if (/^kubectl(?: |$)/.test(command)) return command.replace('kubectl', 'kubectl nodehub')
  return command === '' ? 'nodehub' : `nodehub ${command}`
}

/** Prints all mistakes, and how to get help. */
export function refuse(terminal: Terminal, command: string, mistakes: readonly string[]): ExitCode {
  const name = programName(command)
  const list = mistakes.map((mistake) => `  ${mistake}\n`).join('')
  terminal.err(`${name}: invalid arguments:\n${list}See ${name} --help.\n`)
  return 2
}
