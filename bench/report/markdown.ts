import { type PeerName, peerNames } from '../peers/peer.ts'
import { aimText, type FigureRow, figureRows, isReached, remarksOn, spreadText } from './figures.ts'
import type { PageNotes, Results } from './results.ts'
import { summaryHead, summaryLines, verdictOf } from './summary.ts'

/** From so many cores of others' work on, figures are not what a quiet machine would give. */
const busyCores = 0.1

/** The page that shows one run. */
export function markdownOf(results: Results, { command, moved }: PageNotes): string {
  const { rows, peers, missing } = results
  const measured = new Set(rows.flatMap((row) => row.peers.map(({ peer }) => peer)))
  const shown = peerNames.filter((name) => measured.has(name))
  const remarks = rows.flatMap((row) =>
    row.peers.flatMap(remarksOn).map((remark) => `${row.name}, ${remark}`),
  )
  const figures = figureRows(rows)
  return `${[
    '# One run of the benchmark',
    ...busyWarning(results),
    'Medians; “ahead” is below the peer’s figure in every round. [All figures](#all-figures) stand below.',
    table(summaryHead, summaryLines(figures)),
    ...(figures.some(({ metric }) => metric.aims?.length) ? [countOf(figures)] : []),
    '![Each figure as a multiple of its target, and how work grows](results.svg)',
    table(['', ''], made(results, command)),
    table(
      ['Peer', 'Is'],
      [
        ...peers.map(({ name, description }) => [name, description]),
        ...missing.map(({ name, why }) => [name, `missing: ${why}`]),
      ],
    ),
    '## All figures',
    'Medians of all rounds, with the least and the most. The ratio is the median over the rounds of the hub’s figure to that peer’s in the same round. [README.md](README.md) says how to read this.',
    table(
      ['Row', 'Figure', ...shown, 'Ratio', 'Target', 'Reached'],
      figures.map((figure) => lineOf(figure, shown)),
    ),
    ...(remarks.length > 0
      ? ['What went wrong:', remarks.map((each) => `- ${each}`).join('\n')]
      : []),
    ...(moved.length > 0 ? ['## Compared', moved.map((each) => `- ${each}`).join('\n')] : []),
    '## The rows',
    table(
      ['Row', 'Is'],
      rows.map(({ name, title }) => [name, title]),
    ),
  ].join('\n\n')}\n`
}

function busyWarning({ otherWork }: Results): string[] {
  const most = Math.max(...otherWork)
  if (most <= busyCores) return []
  const cores = most.toFixed(1)
  return [
    `**Made on a busy machine**: other programs took up to ${cores} cores. Ratios within a row may serve as a hint; the rest does not.`,
  ]
}

const made = (results: Results, command: string): string[][] => [
  ['Commit', results.commit],
  ['Date', `${results.date} UTC`],
  ['Machine', results.machine],
  ['API server', results.upstream],
  [
    'Others’ work',
    results.otherWork.map((cores) => `${cores.toFixed(2)} cores`).join(' before, ') + ' after',
  ],
  ['Run', `${results.runs} rounds of ${results.seconds} s, ${results.minutes.toFixed(0)} minutes`],
  ['To repeat', `\`${command}\``],
]

function lineOf({ row, metric, of }: FigureRow, shown: readonly PeerName[]): string[] {
  const hub = of('hub')
  const { against, aims = [], digits } = metric
  const compared = [...new Set([against, ...aims.map(({ to }) => to)])]
  const ratios = compared.flatMap((to) => {
    const ratio = to && hub?.ratios[to]
    return ratio ? [`${spreadText(ratio, 2)} x ${to}`] : []
  })
  const reached = aims.map((aim) => verdictOf(isReached(hub, aim)))
  return [
    row.name,
    metric.title,
    ...shown.map((peer) => {
      const figure = of(peer)
      return figure ? spreadText(figure, digits) : ''
    }),
    ratios.join('; '),
    aims.map(aimText).join('; '),
    reached.join('; '),
  ]
}

function countOf(figures: readonly FigureRow[]): string {
  const verdicts = figures.flatMap(({ metric, of }) =>
    (metric.aims ?? []).map((aim) => isReached(of('hub'), aim)),
  )
  const count = (is: boolean | undefined): number => verdicts.filter((each) => each === is).length
  return `Of ${verdicts.length} targets ${count(true)} are reached, ${count(false)} are not, and ${count(undefined)} were not measured.`
}

function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const text = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [text(head), text(head.map(() => '---')), ...lines.map(text)].join('\n')
}
