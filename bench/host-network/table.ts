import { type Arm, arms } from './arms.ts'
import { modelled } from './model.ts'
import { type Result, sameResult, textOf } from './outcome.ts'
import type { Observed } from './observed.ts'
import { type Workload, workloads } from './workloads.ts'

/**
 * A row of the comparison: the model's prediction, and the observation if nodes could be started.
 */
export interface Row {
  readonly arm: Arm
  readonly workload: Workload
  readonly modelled: Result
  readonly observed?: Observed
}

/** Every workload under every arm, as the model has it. */
export const modelRows = (): readonly Row[] =>
  arms.flatMap((arm) =>
    workloads.map((workload) => ({ arm, workload, modelled: modelled(arm, workload) })),
  )

export const resultOf = ({ observed, modelled }: Row): Result => observed ?? modelled

/** Whether the observation matches the model. */
export const agrees = ({ observed, modelled }: Row): boolean =>
  observed !== undefined && sameResult(observed, modelled)

/** A row for each workload: its title, and what became of its pods under each arm. */
export const cellsOf = (rows: readonly Row[]): string[][] =>
  workloads.map((workload) => [
    workload.title,
    ...arms.map((arm) => {
      const row = rows.find((each) => each.arm === arm && each.workload === workload)
      return row ? textOf(resultOf(row)) : ''
    }),
  ])

/** Lines of Markdown: a workload each, a column for each arm. */
export const tableOf = (rows: readonly Row[]): readonly string[] =>
  markdown(['', ...arms.map(({ name }) => name)], cellsOf(rows))

const columns = [
  'arm',
  'pods',
  'what comes of them',
  'what the API says of them',
  'run on another network than it says',
  'settled after',
  'watched for',
  'restarts',
  'events',
  'API writes',
]

/**
 * For each row what came of it, what the API says against it, and what it cost; the last five where
 * it was seen.
 */
export const detailsOf = (rows: readonly Row[]): string[][] =>
  rows.map((row) => {
    const { said, misrepresented } = resultOf(row)
    const seen = row.observed
    return [
      row.arm.name,
      row.workload.title,
      textOf(resultOf(row)),
      Object.entries(said)
        .map(([what, count]) => `${count} ${what}`)
        .toSorted((a, b) => (a < b ? 1 : -1))
        .join(', '),
      String(misrepresented),
      ...(seen
        ? [
            `${(seen.settledMs / 1000).toFixed(1)} s`,
            `${(seen.watchedMs / 1000).toFixed(1)} s`,
            String(seen.restarts),
            String(total(seen.events)),
            String(total(seen.writes)),
          ]
        : ['', '', '', '', '']),
    ]
  })

/** Lines of Markdown: a row each. */
export const detailTableOf = (rows: readonly Row[]): readonly string[] =>
  markdown(columns, detailsOf(rows))

const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)

function markdown(head: readonly string[], cells: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...cells.map(line)]
}
