/** How a command ends: 0, success; 1, a failure while running; 2, invalid arguments. */
export type ExitCode = 0 | 1 | 2

/** Where a command writes: results to `out`; errors and notes for the operator to `err`. */
export interface Terminal {
  out(text: string): void
  err(text: string): void
}

export interface Command {
  /** What `--help` prints. */
  help(): string
  run(argv: readonly string[], terminal: Terminal): Promise<ExitCode>
}

/** Prints all mistakes, and how to get help. */
export function refuse(terminal: Terminal, command: string, mistakes: readonly string[]): ExitCode {
  const name = command === '' ? 'nodehub' : `nodehub ${command}`
  const list = mistakes.map((mistake) => `  ${mistake}\n`).join('')
  terminal.err(`${name}: this cannot be used:\n${list}See ${name} --help.\n`)
  return 2
}
