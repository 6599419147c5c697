import type { ReadResult } from '../load/read-load.ts'
import { each, type Cost } from '../measure/cost.ts'
import type { Aim, Metric, Sample } from '../measure/row.ts'

/** What the time and the CPU of a list are to be at most. */
export interface ListAims {
  readonly time?: readonly Aim[]
  readonly firstByte?: readonly Aim[]
  readonly cpu?: readonly Aim[]
}

/** The figures of repeated lists of a whole collection. */
export const listMetrics = (
  firstByteTitle: string,
  { time = [], firstByte = [], cpu = [] }: ListAims = {},
): readonly Metric[] => [
  { key: 'time', title: 'ms', digits: 1, against: 'direct', aims: time },
  { key: 'firstByte', title: firstByteTitle, digits: 1, against: 'direct', aims: firstByte },
  { key: 'cpu', title: 'cpu ms', digits: 1, against: 'haproxy-http', aims: cpu },
  { key: 'memory', title: 'peak MB', digits: 0 },
]

export const listSample = (
  result: Pick<ReadResult, 'answers' | 'failures' | 'p50Ms' | 'firstByteP50Ms' | 'loadShare'>,
  cost: Cost,
): Sample => ({
  figures: {
    time: result.p50Ms,
    firstByte: result.firstByteP50Ms,
    cpu: each(cost.cpuSeconds, result.answers / 1000),
    memory: cost.peakMegabytes,
  },
  failures: result.failures,
  loadShare: result.loadShare,
})
