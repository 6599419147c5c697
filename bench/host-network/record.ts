import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { machine } from '../machine.ts'
import { timelineOf } from './timeline.ts'
import { pictureOf } from './picture.ts'
import type { Observed } from './observed.ts'
import { modelRows, type Row } from './table.ts'

/** On what a run was made. */
export interface Made {
  /** Of the day, in UTC. */
  readonly date: string
  readonly kubernetes: string
  readonly containerd: string
  readonly machine: string
}

/** A run on real nodes, as it is kept. */
export interface Run {
  readonly made: Made
  readonly rows: readonly Row[]
}

interface KeptRow {
  readonly arm: string
  readonly workload: string
  readonly observed: Observed
}

/** The run that docs/comparison.md shows: every row of it, in the order of arms and workloads. */
const recordFile = join(import.meta.dirname, '..', '..', 'docs', 'host-network.json')

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
export function readRun(file = recordFile): Run {
  const { made, rows } = JSON.parse(readFileSync(file, 'utf8')) as { made: Made; rows: KeptRow[] }
  return {
    made,
    rows: modelRows().flatMap((row) => {
      const kept = rows.find(
        ({ arm, workload }) => arm === row.arm.name && workload === row.workload.name,
      )
      return kept ? [{ ...row, observed: kept.observed }] : []
    }),
  }
}

/** A line for each row that was seen, so that two runs can be compared. */
export function writeRun({ made, rows }: Run, file = recordFile): void {
  const seen = rows.filter(({ observed }) => observed !== undefined)
  const lines = seen.map(({ arm, workload, modelled, observed }) =>
    JSON.stringify({ arm: arm.name, workload: workload.name, modelled, observed }),
  )
  writeFileSync(
    file,
    `{\n"made": ${JSON.stringify(made)},\n"rows": [\n${lines.join(',\n')}\n]\n}\n`,
  )
}

/** The pictures of docs/comparison.md, by file. */
export const picturesOf = ({ made, rows }: Run): ReadonlyMap<string, string> =>
  new Map([
    [recordFile.replace(/json$/, 'svg'), pictureOf(rows, captionOf(made))],
    [recordFile.replace(/[.]json$/, '-over-time.svg'), timelineOf(rows, captionOf(made))],
  ])
