/** More than anybody mends at a time. */
const mostMistakes = 100

/** What is wrong in a file, each said with the place where it stands. */
export class Mistakes {
  readonly #file: string
  readonly all: string[] = []

  constructor(file: string) {
    this.#file = file
  }

  /** `where`: within the file; empty: the file as a whole. */
  say(where: string, what: string): void {
    if (this.all.length === mostMistakes) this.all.push(`${this.#file}: and more`)
    if (this.all.length > mostMistakes) return
    this.all.push(where === '' ? `${this.#file}: ${what}` : `${this.#file}: ${where}: ${what}`)
  }
}

/** The first line of what was thrown. Node tells the place of a mistake in the syntax only when it ends by it. */
export function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return textOf(cause)
  const hint = cause instanceof SyntaxError ? ' (run it with node to see where)' : ''
  return `${cause.name}: ${cause.message.split('\n')[0] ?? ''}${hint}`
}

function textOf(cause: unknown): string {
  try {
    return String(cause)
  } catch {
    return `what it throws is no error, but ${typeof cause}`
  }
}
