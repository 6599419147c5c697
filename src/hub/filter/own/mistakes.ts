import { pathToFileURL } from 'node:url'

/** More than anybody mends at a time. */
export const mostMistakes = 100

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

/**
 * The first line of what was thrown, and in which line of `file` if it went by there. Node tells
 * the place of a mistake in the syntax only when it ends by it.
 */
export function reasonOf(cause: unknown, file?: string): string {
  if (!(cause instanceof Error)) return textOf(cause)
  const line = file === undefined ? undefined : lineIn(file, cause)
  const hint = cause instanceof SyntaxError ? ' (run it with node to see where)' : ''
  const where = line === undefined ? hint : ` (line ${line})`
  return `${cause.name}: ${cause.message.split('\n')[0] ?? ''}${where}`
}

/** Of the call that is the nearest to what failed. */
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
    return `what it throws is no error, but ${typeof cause}`
  }
}
