import { arms } from './arms.ts'
import { block, drawing, legendHeight, legendOf, line, text } from './drawing.ts'
import { outcomes, type Result } from './outcome.ts'
import { resultsOf, type Row } from './table.ts'
import { type Workload, workloads } from './workloads.ts'

const [cellWidth, cellHeight, left, top] = [86, 34, 440, 84]

/** Between the columns of two kinds of nodes. */
const gap = 24

const title = 'What becomes of pods on a host-network pool, by approach'

/**
 * An SVG: a square for each pod, by what became of it; a line a workload, a column an approach, in
 * three groups by the kind of the nodes; under it how it was made.
 */
export function pictureOf(rows: readonly Row[], caption: string): string {
  const kindOf = ({ hostNetworkNodes, podNetwork }: (typeof arms)[number]): number =>
    hostNetworkNodes ? (podNetwork ? 2 : 1) : 0
  const columns = arms.map((arm, at) => left + at * cellWidth + kindOf(arm) * gap)
  const groups = ['control', "the pool's nodes without a pod network", 'with a CNI plugin']
  const bottom = top + workloads.length * cellHeight
  const width = (columns.at(-1) ?? 0) + cellWidth + 10
  const squares = rows.flatMap((row) => {
    const x = columns[arms.indexOf(row.arm)] ?? 0
    const y = top + workloads.indexOf(row.workload) * cellHeight
    const results = resultsOf(row)
    const said = `${row.arm.title}; ${row.workload.title}: `
    const shown = results.map((result) =>
      outcomes.flatMap((outcome) =>
        Array.from({ length: result.counts[outcome] ?? 0 }, () => outcome),
      ),
    )
    return [
      ...(shown[0] ?? []).map((outcome, at) =>
        block(outcome, [x + at * 20, y + 7, 17, 17], `${said}${outcome}`),
      ),
      ...(results.some((result) => isWorseThanItLooks(result, row.workload))
        ? [text(x + 62, y + 21, '!', 'font-weight="bold"')]
        : []),
      ...(results.length > 1 ? [text(x + 70, y + 21, '~', 'font-weight="bold"')] : []),
    ]
  })
  const legend = bottom + 18
  const under = legend + legendHeight(outcomes)
  return drawing({ width, height: under + 62, title }, [
    ...groups.flatMap((group, kind) => {
      const its = columns.filter((_, at) => kindOf(arms[at] as (typeof arms)[number]) === kind)
      return [
        text(its[0] ?? 0, 50, group, 'class="faint"'),
        line(its[0] ?? 0, 56, (its.at(-1) ?? 0) + cellWidth - 12, 56),
      ]
    }),
    ...arms.map(({ name }, at) => text(columns[at] ?? 0, 74, name.replace(/-cni$/, ''))),
    ...workloads.map(({ title: of }, at) => text(10, top + at * cellHeight + 20, of)),
    ...squares,
    ...legendOf(outcomes, legend),
    text(
      10,
      under + 16,
      "!  a pod is Ready without serving, changed the node's network, or was not back without the link",
    ),
    text(640, under + 16, '~  not the same in each run'),
    text(10, under + 44, caption, 'class="faint"'),
  ])
}

/** Whether the squares alone do not tell what is amiss. */
function isWorseThanItLooks({ counts, remarks }: Result, { happens }: Workload): boolean {
  const served = happens === 'reboot' ? (remarks['served without a link'] ?? 0) : Infinity
  return (
    (remarks['Ready without serving'] ?? 0) > 0 ||
    (remarks["changed the node's network"] ?? 0) > 0 ||
    served < (counts.Serving ?? 0)
  )
}
