import type { PeerName } from '../peers/peer.ts'
import { ratios, spread, type Spread } from './statistics.ts'

/** What the hub's figure is to be at most: itself, or its ratio to a peer's in the same round. */
export interface Aim {
  readonly most: number
  readonly to?: PeerName
  /** In every round; absent: the median of the rounds. */
  readonly everyRound?: true
}

/** Below the peer's figure in every round. */
export const aheadOf = (to: PeerName): Aim => ({ most: 1, to, everyRound: true })

/** One figure that a row reports of each peer. */
export interface Metric {
  readonly key: string
  /** With its unit: the head of a column. */
  readonly title: string
  readonly digits: number
  /** The peer this figure is shown as a ratio to. */
  readonly against?: PeerName
  readonly aims?: readonly Aim[]
  /** Absent: less is better. */
  readonly better?: 'more'
  /** For figures of one thing at several sizes: this one's size, and the name of the curve. */
  readonly point?: { readonly of: string; readonly size: number }
}

/**
 * What one round of one peer gave, by the metrics' keys; absent where the peer has no such figure.
 */
export interface Sample {
  readonly figures: Readonly<Record<string, number | undefined>>
  /** What went wrong, each counted. */
  readonly failures: Readonly<Record<string, number>>
  /**
   * The share of one core that the load took itself. From nine tenths on it may be what limits the
   * figures.
   */
  readonly loadShare: number
}

/** All rounds of one row, of one peer. */
export interface Series {
  readonly peer: PeerName
  readonly samples: readonly Sample[]
}

export interface Figure extends Spread {
  /** In how many rounds it was measured. */
  readonly rounds: number
  /** To those peers' figures in the same round that the metric is compared with, but itself. */
  readonly ratios: Readonly<Partial<Record<PeerName, Spread>>>
}

/** What one peer came to. */
export interface PeerResult {
  readonly peer: PeerName
  readonly figures: Readonly<Record<string, Figure>>
  readonly failures: Readonly<Record<string, number>>
  readonly loadShare: number
}

/** A row's result: whole values, as `results.json` has them. */
export interface RowResult {
  readonly name: string
  readonly title: string
  readonly metrics: readonly Metric[]
  readonly peers: readonly PeerResult[]
}

/**
 * Whether a client was failed by the hub, or by what it is compared with. What yurthub cannot do is
 * shown, and no fault of the run.
 */
export const hasFailed = ({ peers }: RowResult): boolean =>
  peers.some(({ peer, failures }) => peer !== 'yurthub' && Object.keys(failures).length > 0)

/** Draws the rounds of each peer together, and sets them beside those that the metric names. */
export function summarize(
  { name, title, metrics }: Omit<RowResult, 'peers'>,
  series: readonly Series[],
): RowResult {
  const peers = series.map(({ peer, samples }) => ({
    peer,
    figures: Object.fromEntries(
      metrics.flatMap((metric) => {
        const figure = figureOf(metric, peer, samples, series)
        return figure === undefined ? [] : [[metric.key, figure]]
      }),
    ),
    failures: sumOf(samples.map(({ failures }) => failures)),
    loadShare: Math.max(0, ...samples.map(({ loadShare }) => loadShare)),
  }))
  return { name, title, metrics, peers }
}

function figureOf(
  metric: Metric,
  peer: PeerName,
  samples: readonly Sample[],
  series: readonly Series[],
): Figure | undefined {
  const { key } = metric
  const values = samples.map(({ figures }) => finite(figures[key]))
  const known = values.filter((value) => value !== undefined)
  const whole = spread(known)
  if (whole === undefined) return undefined
  const found = basesOf(metric).flatMap((base) => {
    const beside = base === peer ? undefined : series.find((each) => each.peer === base)
    const ratio =
      beside &&
      ratios(
        values,
        beside.samples.map(({ figures }) => finite(figures[key])),
      )
    return ratio === undefined ? [] : [[base, ratio]]
  })
  return { ...whole, rounds: known.length, ratios: Object.fromEntries(found) }
}

/** A percentile of no answers at all is none. */
const finite = (value: number | undefined): number | undefined =>
  Number.isFinite(value) ? value : undefined

/** Whom a figure is compared with; the other build, where there is one, with each. */
const basesOf = ({ against, aims = [] }: Metric): readonly PeerName[] =>
  [...new Set([against, ...aims.map(({ to }) => to), 'against' as const])].filter(
    (name) => name !== undefined,
  )

/** What is held against an aim; `undefined` where it was not measured. */
export const aimedFigure = (figure: Figure | undefined, { to }: Aim): Spread | undefined =>
  to === undefined ? figure : figure?.ratios[to]

/** Adds counts up, name by name. */
export function sumOf(
  counts: readonly Readonly<Record<string, number>>[],
): Readonly<Record<string, number>> {
  const total: Record<string, number> = {}
  for (const each of counts)
    for (const [name, count] of Object.entries(each)) total[name] = (total[name] ?? 0) + count
  return total
}
