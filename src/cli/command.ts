/** How a command ends: 0, all is well; 1, it failed while running; 2, it was not understood. */
export type ExitCode = 0 | 1 | 2

/**
 * Where a command writes. Results go to `out`; what is wrong, and what an operator should know
 * besides, to `err`.
 */
export interface Terminal {
  out(text: string): void
  err(text: string): void
}

export interface Command {
  /** What `--help` prints. */
  help(): string
  run(argv: readonly string[], terminal: Terminal): Promise<ExitCode>
}

/** Says all that is wrong at once, and how to ask for help. */
export function refuse(terminal: Terminal, command: string, mistakes: readonly string[]): ExitCode {
  const name = command === '' ? 'nodehub' : `nodehub ${command}`
  const list = mistakes.map((mistake) => `  ${mistake}\n`).join('')
  terminal.err(`${name}: this cannot be used:\n${list}See ${name} --help.\n`)
  return 2
}
