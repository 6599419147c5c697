import { parseArgs } from 'node:util'
import { type PeerName, peerNames } from './peers/peer.ts'

/** The options of a run. */
export interface BenchOptions<Row> {
  readonly rows: readonly Row[]
  readonly runs: number
  readonly seconds: number
  /** Which API server; without, a real one where there is one. */
  readonly upstream: 'real' | 'sandbox' | undefined
  /** Absent: all there are. */
  readonly peers: readonly PeerName[] | undefined
  /** The folder that results are written to; absent: none. */
  readonly out: string | undefined
  /** `results.json` of an earlier run. */
  readonly baseline: string | undefined
  /** Another checkout, whose hub is measured in turn with this one's. */
  readonly against: string | undefined
  /** The entry of the hub; absent: that of the build. */
  readonly hub: string | undefined
  /** A program. */
  readonly yurthub: string | undefined
  readonly help: boolean
}

/** All mistakes in the arguments. */
export interface Mistakes {
  readonly mistakes: readonly string[]
}

/** Why two builds need more rounds: each of them is one toss of a coin. */
const pairedRuns = '7'

/**
 * Reads the command line. A word of `--only` selects the row of that name, or all whose names it
 * begins up to a dash; `summary` stands for those of the summary. Results of all rows go to
 * `folder`, unless `--out` names another; of some, or of two builds, only where it does.
 */
export function readOptions<Row extends { readonly name: string }>(
  argv: readonly string[],
  all: readonly Row[],
  { folder, summary }: { readonly folder: string; readonly summary: readonly string[] },
): BenchOptions<Row> | Mistakes {
  let values
  try {
    ;({ values } = parseArgs({
      args: [...argv],
      options: {
        only: { type: 'string', multiple: true },
        peers: { type: 'string', multiple: true },
        runs: { type: 'string' },
        seconds: { type: 'string', default: '5' },
        upstream: { type: 'string' },
        out: { type: 'string' },
        baseline: { type: 'string' },
        against: { type: 'string' },
        hub: { type: 'string' },
        yurthub: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }))
  } catch (error) {
    return { mistakes: [(error as Error).message] }
  }
  const mistakes: string[] = []
  const words = wordsOf(values.only).flatMap((word) => (word === 'summary' ? summary : [word]))
  const unknown = words.filter((word) => !all.some(({ name }) => selects(word, name)))
  if (unknown.length > 0)
    mistakes.push(
      `no row ${unknown.join(', ')}; there are ${all.map(({ name }) => name).join(', ')}`,
    )
  const names = wordsOf(values.peers)
  const peers = peerNames.filter((name) => names.includes(name))
  if (peers.length < new Set(names).size)
    mistakes.push(`--peers=${names.join(',')}: there are ${peerNames.join(', ')}`)
  const whole = (flag: string, text: string, most: number): number => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < 1 || value > most)
      mistakes.push(`--${flag}=${text}: a whole number from 1 to ${most}`)
    return value
  }
  const { upstream, out, baseline, against, hub, yurthub } = values
  const runs = whole('runs', values.runs ?? (against === undefined ? '5' : pairedRuns), 100)
  const seconds = whole('seconds', values.seconds, 600)
  if (upstream !== undefined && upstream !== 'real' && upstream !== 'sandbox') {
    mistakes.push(`--upstream=${upstream}: real or sandbox`)
    return { mistakes }
  }
  if (mistakes.length > 0) return { mistakes }
  const isWhole = words.length === 0 && names.length === 0 && against === undefined && !hub
  return {
    rows:
      words.length === 0
        ? all
        : all.filter(({ name }) => words.some((word) => selects(word, name))),
    runs,
    seconds,
    upstream,
    peers:
      names.length > 0 ? peers : against === undefined ? undefined : ['direct', 'against', 'hub'],
    out: out ?? (isWhole ? folder : undefined),
    baseline,
    against,
    hub,
    yurthub,
    help: values.help,
  }
}

const wordsOf = (lists: readonly string[] = []): string[] =>
  lists.flatMap((list) => list.split(',')).filter((word) => word !== '')

const selects = (word: string, name: string): boolean =>
  name === word || name.startsWith(`${word}-`)
