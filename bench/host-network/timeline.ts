import { colours, drawing, legendOf, text } from './drawing.ts'
import { outcomes } from './outcome.ts'
import type { Change } from './series.ts'
import type { Row } from './table.ts'

const [barWidth, cellWidth, cellHeight, left, top] = [128, 144, 48, 350, 64]

/**
 * An SVG of what was seen over time: a bar for each pod, from its creation until it was deleted or
 * no longer looked at; a line a workload, a column an arm, all to one scale.
 */
export function timelineOf(rows: readonly Row[], caption: string): string {
  const arms = [...new Set(rows.map(({ arm }) => arm))]
  const workloads = [...new Set(rows.map(({ workload }) => workload))]
  const width = left + arms.length * cellWidth
  const height = top + workloads.length * cellHeight + 80
  const longest = Math.max(1, ...rows.map(({ observed }) => observed?.watchedMs ?? 0))
  const bars = rows.flatMap(({ arm, workload, observed }) => {
    if (!observed) return []
    const x = left + arms.indexOf(arm) * cellWidth
    const y = top + workloads.indexOf(workload) * cellHeight
    const pods = [...new Set(observed.changes.map(({ pod }) => pod))]
    return pods.flatMap((pod, at) =>
      spansOf(observed.changes, pod, observed.watchedMs).map(({ state, from, to }) => {
        const [begin, end] = [from, to].map((ms) => (ms / longest) * barWidth) as [number, number]
        const said = `${arm.name}, ${workload.title}, ${pod}: ${state} from ${seconds(from)} to ${seconds(to)}`
        return `<rect x="${(x + begin).toFixed(1)}" y="${y + 4 + at * 13}" width="${(end - begin).toFixed(1)}" height="10" fill="${colours[state]}"><title>${said}</title></rect>`
      }),
    )
  })
  const axis = top + workloads.length * cellHeight + 10
  return drawing(width, height, [
    ...arms.flatMap(({ name }, at) => [
      text(left + at * cellWidth, 40, name),
      text(left + at * cellWidth, axis, '0'),
      text(left + at * cellWidth + barWidth - 34, axis, seconds(longest)),
    ]),
    ...workloads.map(({ title }, at) => text(10, top + at * cellHeight + 25, title)),
    ...bars,
    ...legendOf([...outcomes, 'Starting'], height - 34),
    text(10, height - 10, caption),
  ])
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(0)} s`

/** From each change of a pod to its next, until `end`. */
function spansOf(changes: readonly Change[], pod: string, end: number) {
  const its = changes.filter((change) => change.pod === pod)
  return its
    .map(({ state, ms }, at) => ({ state, from: ms, to: its[at + 1]?.ms ?? end }))
    .filter(({ state }) => state !== 'Gone')
}
