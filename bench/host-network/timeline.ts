import { median } from '../measure/statistics.ts'
import { arms } from './arms.ts'
import { block, drawing, legendHeight, legendOf, line, type Shown, text } from './drawing.ts'
import type { Observed } from './observed.ts'
import { outcomes } from './outcome.ts'
import type { Change } from './series.ts'
import { resultsOf, type Row } from './table.ts'
import { workloads } from './workloads.ts'

const [barWidth, cellWidth, cellHeight, left, top] = [250, 280, 56, 130, 92]

const title = 'What pods are, over time, where something happens to them'

/** Those of which time tells more than the end. */
const shown = workloads.filter(({ happens }) => happens !== undefined)

const states = [...outcomes, 'Starting'] as const

/**
 * An SVG of what was seen over time: a bar for each pod, from its creation until it was deleted or
 * no longer looked at; a line an arm, a column a workload, each to a scale of its own. Of several
 * runs that which took as long as most.
 */
export function timelineOf(rows: readonly Row[], caption: string): string {
  const bottom = top + arms.length * cellHeight
  const columns = shown.flatMap((workload, column) => {
    const x = left + column * cellWidth
    const its = rows.filter((row) => row.workload === workload)
    const typical = its.flatMap((row) => {
      const seen = typicalOf(row.runs)
      return seen ? [{ arm: row.arm, seen, differs: resultsOf(row).length > 1 }] : []
    })
    const longest = Math.max(1, ...typical.map(({ seen }) => seen.watchedMs))
    const at = (ms: number): number => x + (ms / longest) * barWidth
    return [
      ...workload.title
        .split(/[;,] (?=the|one that|propagation|updated)/)
        .map((part, of) => text(x, 50 + of * 16, part)),
      ...typical.flatMap(({ arm, seen, differs }) => {
        const y = top + arms.indexOf(arm) * cellHeight
        const pods = [...new Set(seen.changes.map(({ pod }) => pod))]
        return [
          ...(differs ? [text(x + barWidth + 6, y + 16, '~', 'font-weight="bold"')] : []),
          ...pods.flatMap((pod, number) =>
            spansOf(seen.changes, pod, seen.watchedMs).map(({ state, from, to }) =>
              block(
                state,
                [at(from), y + 4 + number * 11, at(to) - at(from), 9],
                `${arm.name}, ${workload.title}, ${pod}: ${state} from ${seconds(from)} to ${seconds(to)}`,
              ),
            ),
          ),
          ...(seen.happened
            ? [line(at(seen.happened.atMs), y, at(seen.happened.atMs), y + cellHeight - 8)]
            : []),
        ]
      }),
      line(x, bottom + 4, x + barWidth, bottom + 4),
      text(x, bottom + 20, '0'),
      text(x + barWidth, bottom + 20, seconds(longest), 'text-anchor="end"'),
    ]
  })
  const legend = bottom + 58
  const under = legend + legendHeight(states)
  const width = left + shown.length * cellWidth
  return drawing({ width, height: under + 40, title }, [
    ...arms.map(({ name }, at) => text(10, top + at * cellHeight + 24, name)),
    ...columns,
    text(
      left,
      bottom + 40,
      'seconds since the first pod was created; the upright line is when it happens',
      'class="faint"',
    ),
    text(
      left + 2 * cellWidth,
      bottom + 40,
      'of several runs the one with the median time to settle;  ~  in another run pods came to something else',
      'class="faint"',
    ),
    ...legendOf(states, legend),
    text(10, under + 24, caption, 'class="faint"'),
  ])
}

/** The run whose pods settled after the median of the times, or after the next longer. */
function typicalOf(runs: readonly Observed[]): Observed | undefined {
  const sorted = runs.toSorted((a, b) => a.settledMs - b.settledMs)
  const middle = median(runs.map(({ settledMs }) => settledMs))
  return sorted.find(({ settledMs }) => settledMs >= middle)
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(0)} s`

/** From each change of a pod to its next, until `end`. */
function spansOf(changes: readonly Change[], pod: string, end: number) {
  const its = changes.filter((change) => change.pod === pod)
  return its.flatMap(({ state, ms }, at) =>
    state === 'Gone'
      ? []
      : [{ state: state satisfies Shown, from: ms, to: its[at + 1]?.ms ?? end }],
  )
}
