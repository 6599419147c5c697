import type { PeerName } from '../peers/peer.ts'
import { aimText, isReached, remarksOn, spreadText } from './figures.ts'
import type { Figure, Metric, RowResult } from '../measure/row.ts'

/**
 * A row as text: a line a figure, a column a peer, each with the median and (least to most); then
 * the hub's ratio to the peer that the figure is compared with, and its aim.
 */
export function tableOf({ name, title, metrics, peers }: RowResult): string {
  const of = (peer: PeerName, { key }: Metric): Figure | undefined =>
    peers.find((each) => each.peer === peer)?.figures[key]
  const head = ['', ...peers.map(({ peer }) => peer), 'ratio', 'aim']
  const lines = metrics.map((metric) => [
    metric.title,
    ...peers.map(({ peer }) => {
      const figure = of(peer, metric)
      return figure ? spreadText(figure, metric.digits) : '-'
    }),
    ratioText(metric, of('hub', metric)),
    (metric.aims ?? []).map((aim) => `${aimText(aim)}${mark(of('hub', metric), aim)}`).join('; '),
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
  const remarks = peers.flatMap(remarksOn).map((remark) => `  ! ${remark}`)
  return [`${name}: ${title}`, ...written, ...remarks, ''].join('\n')
}

function ratioText({ against }: Metric, hub: Figure | undefined): string {
  const ratio = against && hub?.ratios[against]
  return ratio ? `${ratio.median.toFixed(2)} x ${against}` : ''
}

function mark(hub: Figure | undefined, aim: Parameters<typeof isReached>[1]): string {
  const is = isReached(hub, aim)
  return is === undefined ? '' : is ? ' reached' : ' not reached'
}
