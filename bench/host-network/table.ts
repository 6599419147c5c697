import { type Arm, arms } from './arms.ts'
import { modelled } from './model.ts'
import { type Result, textOf } from './outcome.ts'
import type { Observed } from './reality.ts'
import { type Workload, workloads } from './workloads.ts'

/** A row of the comparison: what the model says, and what was seen where nodes could be started. */
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

const resultOf = ({ observed, modelled }: Row): Result => observed ?? modelled

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
export function tableOf(rows: readonly Row[]): readonly string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [
    line(['', ...arms.map(({ name }) => name)]),
    line(['---', ...arms.map(() => '---')]),
    ...cellsOf(rows).map(line),
  ]
}

/** What else was seen, a line each. */
export const remarksOn = (rows: readonly Row[]): readonly string[] =>
  rows.flatMap(({ arm, workload, observed }) =>
    observed === undefined
      ? []
      : [
          `${arm.name}, ${workload.name}: settled after ${(observed.settledMs / 1000).toFixed(0)} s, ${observed.restarts} restarts, ${observed.events} events, ${observed.misrepresented} pods on another network than the API says`,
        ],
  )
