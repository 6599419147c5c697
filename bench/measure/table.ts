import type { Figure, Metric, PeerResult, RowResult } from './row.ts'
import type { Spread } from './statistics.ts'

/**
 * A row as text: a line a peer, of each figure the median, (least-most), and the ratio to the peer
 * its column names.
 */
export function tableOf({ name, title, metrics, peers }: RowResult): string {
  const head = ['', ...metrics.map(headOf)]
  const lines = peers.map(({ peer, figures }) => [
    peer,
    ...metrics.map((metric) => cellOf(metric, figures[metric.key])),
  ])
  const widths = head.map((_, column) =>
    Math.max(...[head, ...lines].map((line) => line[column]?.length ?? 0)),
  )
  const written = [head, ...lines].map((line) =>
    line
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  )
  return [`${name}: ${title}`, ...written, ...peers.flatMap(remarksOn), ''].join('\n')
}

const headOf = ({ title, against }: Metric): string =>
  against === undefined ? title : `${title} : ${against}`

function cellOf({ digits }: Metric, figure: Figure | undefined): string {
  if (figure === undefined) return '-'
  const { ratio } = figure
  return spreadText(figure, digits) + (ratio ? ` x${ratio.median.toFixed(2)}` : '')
}

/** `12.3 (11.9-13.0)`, with thousands set apart. */
function spreadText({ median, min, max }: Spread, digits: number): string {
  const text = (value: number): string =>
    value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  // One run has no range.
  return text(median) + (min === max ? '' : ` (${text(min)}-${text(max)})`)
}

function remarksOn({ peer, failures, loadShare }: PeerResult): string[] {
  const failed = Object.entries(failures).map(
    ([what, count]) => `  ! ${peer}: ${count} times ${what}`,
  )
  const busy =
    loadShare > 0.9
      ? [`  ! ${peer}: the load took ${Math.round(loadShare * 100)} % of a core itself`]
      : []
  return [...failed, ...busy]
}
