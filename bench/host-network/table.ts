import type { Arm } from './arms.ts'
import { type Result, textOf } from './outcome.ts'
import type { Observed } from './reality.ts'
import type { Workload } from './workloads.ts'

/** A row of the comparison: what the model says, and what was seen where nodes could be started. */
export interface Row {
  readonly arm: Arm
  readonly workload: Workload
  readonly modelled: Result
  readonly observed?: Observed
}

const resultOf = ({ observed, modelled }: Row): Result => observed ?? modelled

/** Lines of Markdown: a workload each, a column for each arm. */
export function tableOf(rows: readonly Row[]): readonly string[] {
  const arms = [...new Set(rows.map(({ arm }) => arm))]
  const workloads = [...new Set(rows.map(({ workload }) => workload))]
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [
    line(['', ...arms.map(({ name }) => name)]),
    line(['---', ...arms.map(() => '---')]),
    ...workloads.map((workload) =>
      line([
        workload.title,
        ...arms.map((arm) => {
          const row = rows.find((each) => each.arm === arm && each.workload === workload)
          return row ? textOf(resultOf(row)) : ''
        }),
      ]),
    ),
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
