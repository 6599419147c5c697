import { median } from '../measure/statistics.ts'
import { type Arm, arms } from './arms.ts'
import { modelled, modelledBefore } from './model.ts'
import {
  type Expected,
  isAsExpected,
  remarksOf,
  type Result,
  sameCounts,
  textOf,
} from './outcome.ts'
import { countsBefore, hasNothingToLose, isEndless, type Observed } from './observed.ts'
import { type Workload, workloads } from './workloads.ts'

/**
 * A row of the comparison: the model's prediction, and what was seen, once for each run that nodes
 * could be started for.
 */
export interface Row {
  readonly arm: Arm
  readonly workload: Workload
  readonly modelled: Expected
  readonly runs: readonly Observed[]
}

/** Every workload under every arm, as the model has it. */
export const modelRows = (): readonly Row[] =>
  arms.flatMap((arm) =>
    workloads.map((workload) => ({ arm, workload, modelled: modelled(arm, workload), runs: [] })),
  )

/** What came of it, each differing result once; where it was not seen, the model's. */
export const resultsOf = ({ runs, modelled }: Row): readonly Result[] =>
  runs.length === 0
    ? [modelled]
    : [...new Map(runs.map((seen) => [`${textOf(seen)}; ${remarksOf(seen)}`, seen])).values()]

/** Whether a run is as the model has it, in the end and before anything happened. */
export function isAsModelled(seen: Observed, { arm, workload, modelled }: Row): boolean {
  if (!isAsExpected(seen, modelled)) return false
  if (workload.happens === undefined) return true
  return sameCounts(countsBefore(seen) ?? {}, modelledBefore(arm, workload).counts)
}

/** Whether every run matches the model. */
export const agrees = (row: Row): boolean =>
  row.runs.length > 0 && row.runs.every((seen) => isAsModelled(seen, row))

/** `2 Serving, 1 NotServing (1 Ready without serving)`, each differing result once. */
export const resultTextsOf = (row: Row): readonly string[] =>
  resultsOf(row).map((result) => {
    const remarks = remarksOf(result)
    return remarks ? `${textOf(result)} (${remarks})` : textOf(result)
  })

/** A row for each workload: its title, and what became of its pods under each of the arms. */
export const cellsOf = (rows: readonly Row[], shown: readonly Arm[]): string[][] =>
  workloads.map((workload) => [
    workload.title,
    ...shown.map((arm) => {
      const row = rows.find((each) => each.arm === arm && each.workload === workload)
      return row ? resultTextsOf(row).join(' or ') : ''
    }),
  ])

/** The control, and the approaches on nodes without or with a CNI plugin. */
export const armsBy = (podNetwork: boolean): readonly Arm[] =>
  arms.filter((arm) => arm.podNetwork === podNetwork || !arm.hostNetworkNodes)

/** Lines of Markdown: a workload each, a column for each arm. */
export const tableOf = (rows: readonly Row[]): readonly string[] =>
  [false, true].flatMap((podNetwork) => {
    const shown = armsBy(podNetwork)
    return [...markdown(['', ...shown.map(({ name }) => name)], cellsOf(rows, shown)), '']
  })

const costColumns = [
  'arm',
  'serve, of all pods',
  'on another network than the API says',
  'watched, in seconds a row',
  'restarts',
  'events',
  'API writes',
  'seconds short of service when the holder ends',
  'in the update with maxSurge 0',
  'in the reboot without a link',
  'when propagation is switched off',
  "a node's CPU, in cores",
  "a node's memory, in MB",
  'of it the hub, in MB',
]

/** For each arm what its rows cost together in one run: the median, and the bounds. */
export const costsOf = (rows: readonly Row[]): string[][] =>
  arms.flatMap((arm) => {
    const its = rows.filter((row) => row.arm === arm && row.runs.length > 0)
    const runs = Math.min(...its.map((row) => row.runs.length))
    if (its.length === 0) return []
    const each = <Of>(of: (seen: readonly Observed[]) => Of): readonly Of[] =>
      Array.from({ length: runs }, (_, run) => of(its.flatMap((row) => row.runs[run] ?? [])))
    const sum = (of: (seen: Observed) => number): string =>
      spreadOf(each((seen) => seen.reduce((total, one) => total + of(one), 0)))
    const rowOf = (name: string): Row | undefined =>
      its.find(({ workload }) => workload.name === name)
    const ofNode = (of: (node: NodeMeasured) => number, digits: number): string =>
      spreadOf(
        rowOf('distinct-ports')?.runs.flatMap(({ node }) => (node ? [of(node)] : [])) ?? [],
        digits,
      )
    return [
      [
        arm.name,
        sum(({ counts }) => (counts.Serving ?? 0) + (counts.Shared ?? 0)),
        sum(({ misrepresented }) => misrepresented),
        spreadOf(
          each((seen) => total(seen.map(({ watchedMs }) => watchedMs / 1000)) / seen.length),
        ),
        sum(({ restarts }) => restarts),
        sum(({ events }) => total(Object.values(events))),
        sum(({ writes }) => total(Object.values(writes))),
        shortOf(rowOf('holder-ends')),
        shortOf(rowOf('update-in-place')),
        shortOf(rowOf('offline-reboot')),
        shortOf(rowOf('switched-off')),
        ofNode(({ cores }) => cores, 2),
        ofNode(({ megabytes }) => megabytes, 0),
        ofNode(({ hubMegabytes }) => hubMegabytes, 0),
      ],
    ]
  })

type NodeMeasured = NonNullable<Observed['node']>

/** Seconds short of service, of the runs in which any pod served before. */
function shortOf(row: Row | undefined): string {
  if (row === undefined) return ''
  const serving = row.runs.filter((seen) => !hasNothingToLose(seen))
  if (serving.length === 0) return 'none serves'
  const seconds = serving.flatMap((seen) =>
    isEndless(row.workload, seen) ? Infinity : seen.happened ? seen.happened.shortMs / 1000 : [],
  )
  return spreadOf(seconds, 1)
}

/** Lines of Markdown: an arm each. */
export const costTableOf = (rows: readonly Row[]): readonly string[] =>
  markdown(costColumns, costsOf(rows))

/** `4.2 (3.9 to 5.0)`; the bounds where they differ; `2.5 (2.1 to does not end)`. */
function spreadOf(values: readonly number[], digits = 0): string {
  if (values.length === 0) return ''
  const [middle, least, most] = [median(values), Math.min(...values), Math.max(...values)].map(
    (value) => (value === Infinity ? 'does not end' : value.toFixed(digits)),
  )
  return least === most ? `${middle}` : `${middle} (${least} to ${most})`
}

const total = (values: readonly number[]): number => values.reduce((sum, each) => sum + each, 0)

function markdown(head: readonly string[], cells: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...cells.map(line)]
}
