import {
  aimedFigure,
  type Aim,
  type Figure,
  type Metric,
  type PeerResult,
  type RowResult,
} from '../measure/row.ts'
import type { PeerName } from '../peers/peer.ts'
import type { Spread } from '../measure/statistics.ts'

/** One figure of one row, of all peers. */
export interface FigureRow {
  readonly row: RowResult
  readonly metric: Metric
  readonly of: (peer: PeerName) => Figure | undefined
}

/** All figures of all rows, in their order. */
export const figureRows = (rows: readonly RowResult[]): readonly FigureRow[] =>
  rows.flatMap((row) =>
    row.metrics.map((metric) => ({
      row,
      metric,
      of: (peer: PeerName) => row.peers.find((each) => each.peer === peer)?.figures[metric.key],
    })),
  )

/** With thousands set apart. */
export const numberText = (value: number, digits: number): string =>
  value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })

/** `12.3 (11.9 to 13.0)`: the median, and the spread unless there was but one round. */
export function spreadText({ median, min, max }: Spread, digits: number): string {
  const text = (value: number): string => numberText(value, digits)
  return text(median) + (min === max ? '' : ` (${text(min)} to ${text(max)})`)
}

/** Whether the hub is where it is to be; `undefined` where that was not measured. */
export function isReached(figure: Figure | undefined, aim: Aim): boolean | undefined {
  const held = aimedFigure(figure, aim)
  return held && (aim.everyRound ? held.max < aim.most : held.median <= aim.most)
}

export const aimText = ({ most, to, everyRound }: Aim): string =>
  everyRound
    ? `ahead of ${to}`
    : to === undefined
      ? `${numberText(most, 0).length > 3 ? numberText(most, 0) : most}`
      : `${most} x ${to}`

/** What went wrong with a peer, or makes its figures doubtful. */
export function remarksOn({ peer, failures, loadShare }: PeerResult): string[] {
  const failed = Object.entries(failures).map(([what, count]) => `${peer}: ${count} times ${what}`)
  const busy =
    loadShare > 0.9
      ? [`${peer}: the load took ${Math.round(loadShare * 100)} % of a core itself`]
      : []
  return [...failed, ...busy]
}
