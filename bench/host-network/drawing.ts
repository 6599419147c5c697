import type { State } from './series.ts'

export const colours: Readonly<Record<State, string>> = {
  Serving: '#2e7d32',
  NotServing: '#f9a825',
  CrashLoop: '#c62828',
  Failed: '#6a1b9a',
  Stuck: '#ef6c00',
  Unschedulable: '#90a4ae',
  Starting: '#d7dee2',
  Gone: 'none',
}

export const text = (x: number, y: number, said: string): string =>
  `<text x="${x}" y="${y}">${said}</text>`

/** A square for each state, with its name. */
export const legendOf = (states: readonly State[], y: number): readonly string[] =>
  states.flatMap((state, at) => {
    const x = 10 + at * 130
    return [
      `<rect x="${x}" y="${y - 12}" width="14" height="14" rx="2" fill="${colours[state]}"/>`,
      text(x + 20, y, state),
    ]
  })

/** The whole of an SVG, on white. */
export const drawing = (width: number, height: number, parts: readonly string[]): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n')
