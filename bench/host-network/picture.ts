import { colours, drawing, legendOf, text } from './drawing.ts'
import { outcomes } from './outcome.ts'
import { resultOf, type Row } from './table.ts'

const [cellWidth, cellHeight, left, top] = [118, 42, 350, 64]

/**
 * An SVG: a square for each pod, by what became of it; a line a workload, a column an arm; under it
 * how it was made.
 */
export function pictureOf(rows: readonly Row[], caption: string): string {
  const arms = [...new Set(rows.map(({ arm }) => arm))]
  const workloads = [...new Set(rows.map(({ workload }) => workload))]
  const width = left + arms.length * cellWidth
  const height = top + workloads.length * cellHeight + 60
  const squares = rows.flatMap((row) => {
    const { counts } = resultOf(row)
    const x = left + arms.indexOf(row.arm) * cellWidth
    const y = top + workloads.indexOf(row.workload) * cellHeight
    return outcomes
      .flatMap((outcome) => Array.from({ length: counts[outcome] ?? 0 }, () => outcome))
      .map(
        (outcome, at) =>
          `<rect x="${x + at * 30}" y="${y + 8}" width="24" height="24" rx="3" fill="${colours[outcome]}"><title>${row.arm.name}, ${row.workload.title}: ${outcome}</title></rect>`,
      )
  })
  return drawing(width, height, [
    ...arms.map(({ name }, at) => text(left + at * cellWidth, 40, name)),
    ...workloads.map(({ title }, at) => text(10, top + at * cellHeight + 25, title)),
    ...squares,
    ...legendOf(outcomes, height - 34),
    text(10, height - 10, caption),
  ])
}
