import { parseArgs } from 'node:util'

/** The options of a run. */
export interface BenchOptions<Row> {
  readonly rows: readonly Row[]
  readonly runs: number
  readonly seconds: number
  /** Where the results go besides the tables. */
  readonly json: string | undefined
  /** Which API server; without, a real one where there is one. */
  readonly upstream: 'real' | 'sandbox' | undefined
  readonly help: boolean
}

/** All mistakes in the arguments. */
export interface Mistakes {
  readonly mistakes: readonly string[]
}

/**
 * Reads the command line. A word of `--only` selects the row of that name, or all whose names it
 * begins up to a dash.
 */
export function readOptions<Row extends { readonly name: string }>(
  argv: readonly string[],
  all: readonly Row[],
): BenchOptions<Row> | Mistakes {
  let values
  try {
    ;({ values } = parseArgs({
      args: [...argv],
      options: {
        only: { type: 'string', multiple: true },
        runs: { type: 'string', default: '3' },
        seconds: { type: 'string', default: '3' },
        json: { type: 'string' },
        upstream: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }))
  } catch (error) {
    return { mistakes: [(error as Error).message] }
  }
  const mistakes: string[] = []
  const words = (values.only ?? []).flatMap((only) => only.split(',')).filter((word) => word !== '')
  const unknown = words.filter((word) => !all.some(({ name }) => selects(word, name)))
  if (unknown.length > 0)
    mistakes.push(
      `no row ${unknown.join(', ')}; there are ${all.map(({ name }) => name).join(', ')}`,
    )
  const whole = (flag: 'runs' | 'seconds', most: number): number => {
    const text = values[flag]
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < 1 || value > most)
      mistakes.push(`--${flag}=${text}: a whole number from 1 to ${most}`)
    return value
  }
  const runs = whole('runs', 100)
  const seconds = whole('seconds', 600)
  const { upstream } = values
  if (upstream !== undefined && upstream !== 'real' && upstream !== 'sandbox') {
    mistakes.push(`--upstream=${upstream}: real or sandbox`)
    return { mistakes }
  }
  if (mistakes.length > 0) return { mistakes }
  const rows =
    words.length === 0 ? all : all.filter(({ name }) => words.some((word) => selects(word, name)))
  return { rows, runs, seconds, json: values.json, upstream, help: values.help }
}

const selects = (word: string, name: string): boolean =>
  name === word || name.startsWith(`${word}-`)
