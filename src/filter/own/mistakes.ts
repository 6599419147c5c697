/** What is wrong in a file, each said with the place where it stands. */
export class Mistakes {
  readonly #file: string
  readonly all: string[] = []

  constructor(file: string) {
    this.#file = file
  }

  /** `where`: within the file; empty: the file as a whole. */
  say(where: string, what: string): void {
    this.all.push(where === '' ? `${this.#file}: ${what}` : `${this.#file}: ${where}: ${what}`)
  }
}

/** The first line of what was thrown. Node tells the place of a mistake in the syntax only when it ends by it. */
export function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  const hint = cause instanceof SyntaxError ? ' (run it with node to see where)' : ''
  return `${cause.name}: ${cause.message.split('\n')[0] ?? ''}${hint}`
}
