/** How a command ends: 0, success; 1, a failure while running; 2, invalid arguments. */
export type ExitCode = 0 | 1 | 2

/** Where a command writes: results to `out`; errors and notes for the operator to `err`. */
export interface Terminal {
  out(text: string): void
  err(text: string): void
}

/** A flag as a shell completes it. */
export interface CompletedFlag {
  readonly type: { readonly placeholder: string; readonly bare?: string | undefined }
  readonly help: string
  readonly short?: string
  /** Its heading in the help text. */
  readonly group?: string
}

/** The words that may follow the name of a command. */
export interface Completions {
  readonly flags?: Readonly<Record<string, CompletedFlag>>
  /** One of these comes first. */
  readonly words?: readonly string[]
  /** File names may follow. */
  readonly files?: true
}

export interface Command {
  /** The text that `--help` prints; with `--all` in `argv` also flags without effect. */
  help(argv?: readonly string[]): string
  /** For the scripts of `nodehub completion`. */
  completions(): Completions | Promise<Completions>
  run(argv: readonly string[], terminal: Terminal): Promise<ExitCode>
}

/** A command before it is loaded. */
export interface CommandEntry {
  readonly summary: string
  /** Loaded when it runs: `version` does not load a hub's modules. */
  readonly load: (argv: readonly string[]) => Promise<Command>
}

/** Prints all mistakes, and how to get help. */
export function refuse(terminal: Terminal, command: string, mistakes: readonly string[]): ExitCode {
  const name = command === '' ? 'nodehub' : `nodehub ${command}`
  const list = mistakes.map((mistake) => `  ${mistake}\n`).join('')
  terminal.err(`${name}: this cannot be used:\n${list}See ${name} --help.\n`)
  return 2
}
