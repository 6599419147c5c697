import { pathToFileURL } from 'node:url'

/** More than an operator corrects at once. */
export const mostMistakes = 100

/** Collects the mistakes in a file, each with its location. */
export class Mistakes {
  readonly #file: string
  readonly all: string[] = []

  constructor(file: string) {
    this.#file = file
  }

  /** `where`: the location in the file; empty: the whole file. */
  say(where: string, what: string): void {
    if (this.all.length === mostMistakes) this.all.push(`${this.#file}: and more`)
    if (this.all.length > mostMistakes) return
    this.all.push(where === '' ? `${this.#file}: ${what}` : `${this.#file}: ${where}: ${what}`)
  }
}

/**
 * The first line of a thrown value, with the line in `file` where the stack has one. For a syntax
 * error Node reports the location only when it exits.
 */
export function reasonOf(cause: unknown, file?: string): string {
  if (!(cause instanceof Error)) return textOf(cause)
  const line = file === undefined ? undefined : lineIn(file, cause)
  const hint = cause instanceof SyntaxError ? ' (run it with node to see where)' : ''
  const where = line === undefined ? hint : ` (line ${line})`
  return `${cause.name}: ${cause.message.split('\n')[0] ?? ''}${where}`
}

/** The call nearest to the failure. */
function lineIn(file: string, { stack }: Error): string | undefined {
  const { href } = pathToFileURL(file)
  const call =
    typeof stack === 'string' ? stack.split('\n').find((each) => each.includes(href)) : ''
  return /:(\d+):\d+\)?$/.exec(call ?? '')?.[1]
}

function textOf(cause: unknown): string {
  try {
    return String(cause)
  } catch {
    return `it throws a value that is no error: ${typeof cause}`
  }
}
