import type { State } from './series.ts'

/** Of each state its colour, on light and on dark, and what it means. */
const looks: Readonly<Record<Exclude<State, 'Gone'>, readonly [string, string, string]>> = {
  Serving: ['#2e7d32', '#66bb6a', 'answers with its own name on its port'],
  Shared: ['#00838f', '#4dd0e1', 'shares its port: another answers every other connection'],
  NotServing: ['#f9a825', '#ffd54f', 'runs and does not answer'],
  CrashLoop: ['#c62828', '#ef5350', 'ends again and again'],
  Failed: ['#6a1b9a', '#ba68c8', 'its kubelet refuses it'],
  Stuck: ['#ef6c00', '#ffa726', 'its sandbox gets no network'],
  Unschedulable: ['#78909c', '#90a4ae', 'no node takes it'],
  Refused: ['#37474f', '#cfd8dc', 'the API server does not take it'],
  Starting: ['#d7dee2', '#455a64', 'on its way'],
}

export type Shown = keyof typeof looks

export const text = (x: number, y: number, said: string, attributes = ''): string =>
  `<text x="${x}" y="${y}" ${attributes}>${said.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</text>`

/** A rectangle in the colour of a state, which says what it is when it is pointed at. */
export const block = (
  state: Shown,
  [x, y, width, height]: readonly [number, number, number, number],
  title: string,
): string =>
  `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${height}" rx="2" class="${state}"><title>${title}</title></rect>`

const [legendWidth, legendLine] = [430, 22]

/** A square for each state, with its name and what it means; two columns, from `y` on. */
export const legendOf = (states: readonly Shown[], y: number): readonly string[] =>
  states.flatMap((state, at) => {
    const [x, top] = [10 + (at % 2) * legendWidth, y + Math.floor(at / 2) * legendLine]
    return [
      block(state, [x, top, 14, 14], state),
      text(x + 22, top + 12, `${state}: ${looks[state][2]}`),
    ]
  })

export const legendHeight = (states: readonly Shown[]): number =>
  Math.ceil(states.length / 2) * legendLine

/** The whole of an SVG, dark where the reader's screen is. */
export function drawing(
  { width, height, title }: { width: number; height: number; title: string },
  parts: readonly string[],
): string {
  const fills = (at: 0 | 1): string =>
    Object.entries(looks)
      .map(([state, colours]) => `.${state}{fill:${colours[at]}}`)
      .join('')
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" font-family="sans-serif" font-size="13">`,
    `<title>${title}</title>`,
    `<style>text{fill:#1f2328}.ground{fill:#ffffff}.line{stroke:#8c959f}.faint{fill:#59636e}${fills(0)}@media (prefers-color-scheme: dark){text{fill:#e6edf3}.ground{fill:#0d1117}.line{stroke:#6e7681}.faint{fill:#9198a1}${fills(1)}}</style>`,
    `<rect width="${width}" height="${height}" class="ground"/>`,
    text(10, 26, title, 'font-size="17" font-weight="bold"'),
    ...parts,
    '</svg>',
    '',
  ].join('\n')
}

export const line = (x1: number, y1: number, x2: number, y2: number): string =>
  `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="line"/>`
