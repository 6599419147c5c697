import { ratios, spread, type Spread } from './statistics.ts'

/** One figure that a row reports of each peer. */
export interface Metric {
  readonly key: string
  /** With its unit: the head of a column. */
  readonly title: string
  readonly digits: number
  /** The peer this figure is shown as a ratio to. */
  readonly against?: 'direct' | 'haproxy'
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
  readonly peer: string
  readonly samples: readonly Sample[]
}

export interface Figure extends Spread {
  /** To the metric's base peer in the same round; absent for that peer itself. */
  readonly ratio?: Spread
}

/** What one peer came to. */
export interface PeerResult {
  readonly peer: string
  readonly figures: Readonly<Record<string, Figure>>
  readonly failures: Readonly<Record<string, number>>
  readonly loadShare: number
}

/** A row's result: whole values, as `--json` writes them. */
export interface RowResult {
  readonly name: string
  readonly title: string
  readonly metrics: readonly Metric[]
  readonly peers: readonly PeerResult[]
}

/** Draws the rounds of each peer together, and sets them beside the peer that the metric names. */
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
  { key, against }: Metric,
  peer: string,
  samples: readonly Sample[],
  series: readonly Series[],
): Figure | undefined {
  const values = samples.map(({ figures }) => figures[key])
  const whole = spread(values.filter((value) => value !== undefined))
  if (whole === undefined) return undefined
  const base = peer === against ? undefined : series.find((each) => each.peer === against)
  const ratio =
    base &&
    ratios(
      values,
      base.samples.map(({ figures }) => figures[key]),
    )
  return { ...whole, ...(ratio && { ratio }) }
}

/** Adds counts up, name by name. */
export function sumOf(
  counts: readonly Readonly<Record<string, number>>[],
): Readonly<Record<string, number>> {
  const total: Record<string, number> = {}
  for (const each of counts)
    for (const [name, count] of Object.entries(each)) total[name] = (total[name] ?? 0) + count
  return total
}
