import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { machine } from '../machine.ts'
import { timelineOf } from './timeline.ts'
import { pictureOf } from './picture.ts'
import type { Observed } from './observed.ts'
import { modelRows, type Row } from './table.ts'

/** On what runs were made. */
export interface Made {
  /** Of the last day, in UTC. */
  readonly date: string
  readonly kubernetes: string
  readonly containerd: string
  readonly machine: string
  /** How long each run took, where all rows are of the same runs. */
  readonly minutes?: readonly number[]
}

/** One run or more on real nodes, as they are kept. */
export interface Record {
  readonly made: Made
  readonly rows: readonly Row[]
}

interface KeptRow {
  readonly arm: string
  readonly workload: string
  readonly runs: readonly Observed[]
}

/** What host-network-comparison.md shows: every row, in the order of arms and workloads. */
const recordFile = join(import.meta.dirname, '..', '..', 'docs', 'design', 'host-network.json')

export const madeNow = (kubernetes: string, containerd: string): Made => ({
  date: new Date().toISOString().slice(0, 10),
  kubernetes,
  containerd,
  machine: machine(),
})

/** `Kubernetes v1.36.2, containerd 1.6.20, on 2026-11-21`. */
export const captionOf = ({ kubernetes, containerd, date }: Made): string =>
  `Kubernetes ${kubernetes}, containerd ${containerd}, on ${date}`

/** Where what was seen is not as the model has it now, the row says so: `agrees`. */
export function readRecord(file = recordFile): Record {
  const { made, rows } = JSON.parse(readFileSync(file, 'utf8')) as { made: Made; rows: KeptRow[] }
  return {
    made,
    rows: modelRows().flatMap((row) => {
      const kept = rows.find(
        ({ arm, workload }) => arm === row.arm.name && workload === row.workload.name,
      )
      return kept ? [{ ...row, runs: kept.runs }] : []
    }),
  }
}

/** A line for each row that was seen, so that two records can be compared. */
export function writeRecord({ made, rows }: Record, file = recordFile): void {
  const lines = rows
    .filter(({ runs }) => runs.length > 0)
    .map(({ arm, workload, modelled, runs }) =>
      JSON.stringify({ arm: arm.name, workload: workload.name, modelled, runs }),
    )
  writeFileSync(
    file,
    `{\n"made": ${JSON.stringify(made)},\n"rows": [\n${lines.join(',\n')}\n]\n}\n`,
  )
}

/** The record with what was seen now in the place of what it has of the same rows. */
export function mergeIntoRecord({ made, rows }: Record, file = recordFile): void {
  const seen = (row: Row): Row | undefined =>
    rows.find((each) => each.arm === row.arm && each.workload === row.workload)
  const kept = readRecord(file).rows
  const isWhole = kept.every((row) => (seen(row)?.runs.length ?? 0) > 0)
  const { minutes, ...rest } = made
  writeRecord(
    {
      made: { ...rest, ...(isWhole && minutes && { minutes }) },
      rows: modelRows().map((row) => {
        const now = seen(row)
        if (now && now.runs.length > 0) return now
        return kept.find((each) => each.arm === row.arm && each.workload === row.workload) ?? row
      }),
    },
    file,
  )
}

/** The pictures of docs/design/host-network-comparison.md, by file. */
export const picturesOf = ({ made, rows }: Record): ReadonlyMap<string, string> =>
  new Map([
    [recordFile.replace(/json$/, 'svg'), pictureOf(rows, captionOf(made))],
    [recordFile.replace(/[.]json$/, '-over-time.svg'), timelineOf(rows, captionOf(made))],
  ])
