import { type Outcome, outcomes } from './outcome.ts'
import type { Row } from './table.ts'

const colours: Readonly<Record<Outcome, string>> = {
  Serving: '#2e7d32',
  NotServing: '#f9a825',
  CrashLoop: '#c62828',
  Failed: '#6a1b9a',
  Stuck: '#ef6c00',
  Unschedulable: '#90a4ae',
}

const [cellWidth, cellHeight, left, top] = [118, 42, 290, 64]

/** An SVG: a square for each pod, by what became of it; a line a workload, a column an arm. */
export function pictureOf(rows: readonly Row[]): string {
  const arms = [...new Set(rows.map(({ arm }) => arm))]
  const workloads = [...new Set(rows.map(({ workload }) => workload))]
  const width = left + arms.length * cellWidth
  const height = top + workloads.length * cellHeight + 40
  const text = (x: number, y: number, said: string): string =>
    `<text x="${x}" y="${y}">${said}</text>`
  const squares = rows.flatMap((row) => {
    const { counts } = row.observed ?? row.modelled
    const x = left + arms.indexOf(row.arm) * cellWidth
    const y = top + workloads.indexOf(row.workload) * cellHeight
    return outcomes
      .flatMap((outcome) => Array.from({ length: counts[outcome] ?? 0 }, () => outcome))
      .map(
        (outcome, at) =>
          `<rect x="${x + at * 30}" y="${y + 8}" width="24" height="24" rx="3" fill="${colours[outcome]}"><title>${row.arm.name}, ${row.workload.title}: ${outcome}</title></rect>`,
      )
  })
  const legend = outcomes.flatMap((outcome, at) => {
    const x = 10 + at * 130
    return [
      `<rect x="${x}" y="${height - 26}" width="14" height="14" rx="2" fill="${colours[outcome]}"/>`,
      text(x + 20, height - 14, outcome),
    ]
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...arms.map(({ name }, at) => text(left + at * cellWidth, 40, name)),
    ...workloads.map(({ title }, at) => text(10, top + at * cellHeight + 25, title)),
    ...squares,
    ...legend,
    '</svg>',
    '',
  ].join('\n')
}
