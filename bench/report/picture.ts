import { fittedLine, type Point } from '../measure/growth.ts'
import { aimedFigure, type Aim } from '../measure/row.ts'
import { type PeerName, peerNames } from '../peers/peer.ts'
import type { Spread } from '../measure/statistics.ts'
import { aimText, type FigureRow, figureRows, numberText } from './figures.ts'
import type { Results } from './results.ts'

/** Of each peer on light and on dark ground. */
const colours: Readonly<Record<PeerName, readonly [light: string, dark: string]>> = {
  direct: ['#5f6b73', '#9aa7b0'],
  'haproxy-http': ['#1b7f4d', '#4cc38a'],
  'haproxy-tcp': ['#7aa71b', '#b5d95b'],
  nginx: ['#0a7ea4', '#4fc3e8'],
  'http-proxy': ['#a15c00', '#f0a848'],
  yurthub: ['#8a3ffc', '#c29bff'],
  against: ['#666666', '#bbbbbb'],
  hub: ['#d3243b', '#ff7a8a'],
}

/** An axis whose ends are powers of ten. */
interface Axis {
  readonly from: number
  readonly to: number
  readonly at: (value: number) => number
}

function logAxis(values: readonly number[], start: number, end: number): Axis {
  const known = values.filter((value) => value > 0 && Number.isFinite(value))
  const [least = 1, most = least] = [Math.min(...known), Math.max(...known)].filter(Number.isFinite)
  const low = Math.floor(Math.log10(least))
  const high = Math.max(low + 1, Math.ceil(Math.log10(most)))
  const clamp = (value: number): number => Math.min(high, Math.max(low, value))
  return {
    from: low,
    to: high,
    at: (value) => start + ((clamp(Math.log10(value)) - low) / (high - low)) * (end - start),
  }
}

/** The powers of ten of an axis. */
const ticks = ({ from, to }: Axis): number[] =>
  Array.from({ length: to - from + 1 }, (_, at) => 10 ** (from + at))

const escaped = (words: string): string =>
  words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const text = (x: number, y: number, words: string, anchor = 'start', kind = ''): string =>
  `<text x="${n(x)}" y="${n(y)}" text-anchor="${anchor}"${kind && ` class="${kind}"`}>${escaped(words)}</text>`

const line = (x1: number, y1: number, x2: number, y2: number, kind: string): string =>
  `<line x1="${n(x1)}" y1="${n(y1)}" x2="${n(x2)}" y2="${n(y2)}" class="${kind}"/>`

const n = (value: number): string => String(Math.round(value * 10) / 10)

/** A point with its name for who points at it. */
const dot = (x: number, y: number, peer: PeerName, words: string): string =>
  `<circle cx="${n(x)}" cy="${n(y)}" r="${peer === 'hub' ? 5 : 4}" class="${peer}"><title>${escaped(words)}</title></circle>`

const width = 1060
const left = 420
const lineHeight = 20

/**
 * The run in a picture: each figure that has an aim as a multiple of it, of all peers; under that
 * what grows, with the line that is fitted through it.
 */
export function pictureOf(results: Results): string {
  const figures = figureRows(results.rows)
  const peers = peerNames.filter((name) =>
    results.rows.some((row) => row.peers.some(({ peer }) => peer === name)),
  )
  const legend = legendOf(peers, 62)
  const aims = aimsPanel(figures, peers, 92)
  const growth = growthPanel(figures, aims.bottom + 40)
  const height = growth.bottom + 20
  const made = `${results.commit}, ${results.date} UTC, ${results.machine}`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" role="img" aria-label="One run of the benchmark">`,
    `<style>${style(peers)}</style>`,
    `<rect width="${width}" height="${height}" class="ground"/>`,
    text(16, 26, 'What the hub costs, as a multiple of what is aimed for', 'start', 'title'),
    text(16, 44, made, 'start', 'quiet'),
    ...legend,
    ...aims.parts,
    ...growth.parts,
    '</svg>',
    '',
  ].join('\n')
}

function style(peers: readonly PeerName[]): string {
  const of = (ground: string, ink: string, quiet: string, grid: string, dark: 0 | 1): string =>
    [
      `.ground{fill:${ground}}text{fill:${ink}}.quiet{fill:${quiet}}.grid{stroke:${grid}}.aim{stroke:${ink}}`,
      ...peers.map((peer) => `.${peer}{fill:${colours[peer][dark]};stroke:${colours[peer][dark]}}`),
    ].join('')
  return [
    '.title{font-size:16px;font-weight:bold}.grid{stroke-width:1}.aim{stroke-width:1.5;stroke-dasharray:5 3}.spread{stroke-width:2}.fit{stroke-width:1.5}',
    of('#ffffff', '#1d2429', '#5f6b73', '#e1e6e9', 0),
    `@media (prefers-color-scheme:dark){${of('#14181b', '#e6ebee', '#9aa7b0', '#2b3338', 1)}}`,
  ].join('')
}

const legendOf = (peers: readonly PeerName[], y: number): string[] =>
  peers.flatMap((peer, at) => [dot(22 + at * 116, y, peer, peer), text(32 + at * 116, y + 4, peer)])

interface Panel {
  readonly parts: readonly string[]
  readonly bottom: number
}

/** A line an aim: every peer's figure, or ratio, divided by the aim; the dashed line is the aim. */
function aimsPanel(figures: readonly FigureRow[], peers: readonly PeerName[], top: number): Panel {
  const lines = figures.flatMap((figure) =>
    (figure.metric.aims ?? []).flatMap((aim) => {
      const found = peers.flatMap((peer) => {
        const spread = heldOf(figure, peer, aim)
        return spread ? [{ peer, spread }] : []
      })
      return found.some(({ peer }) => peer === 'hub') ? [{ figure, aim, found }] : []
    }),
  )
  const bottom = top + lines.length * lineHeight
  const values = lines.flatMap(({ aim, found }) =>
    found.map(({ spread }) => spread.median / aim.most),
  )
  // The aim itself is always to be seen.
  const axis = logAxis([...values, 1], left, width - 24)
  const rows = lines.flatMap(({ figure: { row, metric }, aim, found }, index) => {
    const y = top + (index + 0.5) * lineHeight
    const name = `${row.name}, ${metric.title}: ${aimText(aim)}`
    // The hub last, over the others.
    return [
      text(left - 12, y + 4, name, 'end'),
      ...found.flatMap(({ peer, spread }) => [
        ...(peer === 'hub' && spread.min > 0
          ? [
              line(
                axis.at(spread.min / aim.most),
                y,
                axis.at(spread.max / aim.most),
                y,
                'spread hub',
              ),
            ]
          : []),
        ...(spread.median > 0
          ? [
              dot(
                axis.at(spread.median / aim.most),
                y,
                peer,
                `${peer}: ${numberText(spread.median, 2)}`,
              ),
            ]
          : []),
      ]),
    ]
  })
  const grid = ticks(axis).flatMap((tick) => [
    line(axis.at(tick), top, axis.at(tick), bottom, tick === 1 ? 'aim' : 'grid'),
    text(axis.at(tick), bottom + 15, `${tick}`, 'middle', 'quiet'),
  ])
  return {
    parts: [
      ...grid,
      ...rows,
      text(
        (left + width) / 2,
        bottom + 31,
        'multiple of the aim: 1 and less is reached',
        'middle',
        'quiet',
      ),
    ],
    bottom: bottom + 36,
  }
}

/** The base of a ratio stands at 1. */
function heldOf({ of }: FigureRow, peer: PeerName, aim: Aim): Spread | undefined {
  if (peer === aim.to) return of(peer) && { median: 1, min: 1, max: 1 }
  return aimedFigure(of(peer), aim)
}

const panelWidth = 330
const panelHeight = 190

/** What grows, each curve in a square of its own: points, and the line through their upper half. */
function growthPanel(figures: readonly FigureRow[], top: number): Panel {
  const curves = Map.groupBy(
    figures.filter(({ metric }) => metric.point !== undefined),
    ({ row, metric }) => `${row.name}: ${metric.point?.of}`,
  )
  if (curves.size === 0) return { parts: [], bottom: top - 30 }
  const parts = [...curves].flatMap(([name, points], index) => {
    const x = 50 + (index % 3) * (panelWidth + 10)
    const y = top + 40 + Math.floor(index / 3) * (panelHeight + 60)
    return curveOf(name, points, x, y)
  })
  const lines = Math.ceil(curves.size / 3)
  return {
    parts: [text(16, top, 'How work grows: a slope of 1 is linear', 'start', 'title'), ...parts],
    bottom: top + 40 + lines * (panelHeight + 60),
  }
}

function curveOf(name: string, figures: readonly FigureRow[], x: number, y: number): string[] {
  const drawn = (['direct', 'hub'] as const).map((peer) => ({
    peer,
    points: figures.flatMap(({ metric, of }): Point[] => {
      const value = of(peer)?.median
      return value === undefined || metric.point === undefined
        ? []
        : [{ size: metric.point.size, value }]
    }),
  }))
  const all = drawn.flatMap(({ points }) => points)
  const [innerWidth, bottom] = [panelWidth - 50, y + panelHeight - 30]
  const sizes = logAxis(
    all.map(({ size }) => size),
    x,
    x + innerWidth,
  )
  const values = logAxis(
    all.map(({ value }) => value),
    bottom,
    y,
  )
  const [, unit = ''] = name.split(': ')
  const of = figures[0]?.metric.title.split(' ').at(-1) ?? ''
  return [
    ...ticks(sizes).flatMap((tick) => [
      line(sizes.at(tick), y, sizes.at(tick), bottom, 'grid'),
      text(sizes.at(tick), bottom + 14, short(tick), 'middle', 'quiet'),
    ]),
    ...ticks(values).flatMap((tick) => [
      line(x, values.at(tick), x + innerWidth, values.at(tick), 'grid'),
      text(x - 5, values.at(tick) + 4, short(tick), 'end', 'quiet'),
    ]),
    text(x + innerWidth / 2, bottom + 29, `${of} (up: ${unit})`, 'middle', 'quiet'),
    ...drawn.flatMap(({ peer, points }, at) => {
      const fit = fittedLine(points)
      const ends = points.map(({ size }) => size).slice(-3)
      const [from = 1, to = 1] = [ends[0], ends.at(-1)]
      const height = (size: number): number =>
        values.at((fit?.factor ?? 1) * size ** (fit?.slope ?? 0))
      return [
        ...(fit && points.length > 1
          ? [line(sizes.at(from), height(from), sizes.at(to), height(to), `fit ${peer}`)]
          : []),
        ...points.map(({ size, value }) =>
          dot(
            sizes.at(size),
            values.at(value),
            peer,
            `${peer}: ${numberText(value, 2)} at ${short(size)}`,
          ),
        ),
        ...(fit ? [text(x + 6, y + 14 + at * 14, `${peer}: slope ${fit.slope.toFixed(2)}`)] : []),
      ]
    }),
    text(x, y - 8, name),
  ]
}

const short = (value: number): string =>
  value >= 1e6
    ? `${value / 1e6} M`
    : value >= 1000
      ? `${value / 1000} k`
      : `${Number(value.toPrecision(2))}`
