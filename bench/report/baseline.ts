import type { Figure, Metric, RowResult } from '../measure/row.ts'
import type { Spread } from '../measure/statistics.ts'
import type { Results } from './results.ts'

/** A figure of the hub that is elsewhere than it was, by more than noise explains. */
export interface Move {
  readonly row: string
  readonly metric: Metric
  readonly before: Spread
  readonly after: Spread
  /** The peer whose figure both were divided by in their own rounds; absent: the plain figures. */
  readonly to: string | undefined
  readonly word: 'better' | 'worse'
}

export interface Comparison {
  readonly moves: readonly Move[]
  /** How many figures both runs have. */
  readonly compared: number
  /** Why some of them say nothing. */
  readonly notes: readonly string[]
}

/** By less than this share of what was, nothing is said to have moved. */
const leastShare = 0.1

/**
 * What moved from one run to the next. A figure has moved if the medians are further apart than
 * both runs' spreads (most less least) together, and by more than a tenth. Where both runs have
 * the peer that a figure is compared with, the ratios are what counts: a slower machine slows both.
 * A figure of fewer than three rounds has no spread to speak of, and is not compared.
 */
export function compare(before: Results, after: Results): Comparison {
  const pairs = after.rows.flatMap((row) =>
    before.rows.filter(({ name }) => name === row.name).flatMap((earlier) => pairsOf(earlier, row)),
  )
  const enough = pairs.filter(({ was, is }) => Math.min(was.rounds, is.rounds) >= 3)
  const notes = [
    ...(pairs.length > enough.length
      ? [`${pairs.length - enough.length} figures have fewer than three rounds`]
      : []),
    ...(before.machine === after.machine
      ? []
      : [`another machine before: ${before.machine}; only ratios can be trusted`]),
    ...(before.upstream === after.upstream
      ? []
      : [`another API server before: ${before.upstream}`]),
  ]
  return { moves: enough.flatMap(moveOf), compared: enough.length, notes }
}

interface Pair {
  readonly row: string
  readonly metric: Metric
  readonly was: Figure
  readonly is: Figure
}

/** The figures of the hub that both have. */
function pairsOf(before: RowResult, after: RowResult): Pair[] {
  const [was, is] = [before, after].map(({ peers }) => peers.find(({ peer }) => peer === 'hub'))
  return after.metrics.flatMap((metric) => {
    const [earlier, later] = [was?.figures[metric.key], is?.figures[metric.key]]
    return earlier && later ? [{ row: after.name, metric, was: earlier, is: later }] : []
  })
}

function moveOf({ row, metric, was, is }: Pair): Move[] {
  const { against, better = 'less' } = metric
  const ratios = against && [was.ratios[against], is.ratios[against]]
  const [before = was, after = is] = ratios?.every((ratio) => ratio !== undefined) ? ratios : []
  const by = after.median - before.median
  const noise = before.max - before.min + after.max - after.min
  if (Math.abs(by) <= noise || Math.abs(by) <= leastShare * Math.abs(before.median)) return []
  return [
    {
      row,
      metric,
      before,
      after,
      to: before === was ? undefined : against,
      word: by > 0 === (better === 'more') ? 'better' : 'worse',
    },
  ]
}

/** A line for each move, the bad ones first. */
export function linesOf({ moves, compared, notes }: Comparison): string[] {
  const line = ({ row, metric, before, after, to, word }: Move): string => {
    const text = ({ median, min, max }: Spread): string =>
      [median, min, max].map((each) => each.toFixed(Math.max(2, metric.digits))).join(' ')
    const unit = to === undefined ? metric.title : `${metric.title} : ${to}`
    return `${word}: ${row}, ${unit}: ${text(before)} before, ${text(after)} now (median least most)`
  }
  const sorted = moves.toSorted((a, b) => b.word.localeCompare(a.word))
  return [
    ...sorted.map(line),
    ...notes,
    `${moves.length} of ${compared} figures moved beyond noise`,
  ]
}
