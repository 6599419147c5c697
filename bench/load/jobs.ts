import { crowd, crowdSeen } from './crowd-load.ts'
import { fanOut, fanOutSeen } from './fan-out-load.ts'
import { countItems, fetchOnce, read, sizesOf } from './read-load.ts'
import { watch, watched } from './watch-load.ts'
import { watchList } from './watch-list-load.ts'
import { write } from './write-load.ts'

/** The jobs of a load process, by name. */
export const jobs = {
  countItems,
  crowd,
  crowdSeen,
  fanOut,
  fanOutSeen,
  fetchOnce,
  read,
  sizesOf,
  watch,
  watched,
  watchList,
  write,
} as const

export type JobName = keyof typeof jobs
export type JobOf<Name extends JobName> = Parameters<(typeof jobs)[Name]>[0]
export type ResultOf<Name extends JobName> = Awaited<ReturnType<(typeof jobs)[Name]>>

/** From the process that measures. One at a time. */
export interface JobMessage {
  readonly name: JobName
  readonly job: unknown
}

/** Back to it. */
export type ResultMessage = { readonly result: unknown } | { readonly failure: string }
