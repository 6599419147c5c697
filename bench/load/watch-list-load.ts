import { percentile } from '../measure/statistics.ts'
import { Connection, requestOf } from './connection.ts'
import { Failures, startShare } from './failures.ts'
import { Frames } from './frames.ts'
import type { Target } from './target.ts'

/** WatchLists of one collection, one at a time and over again for `seconds`, each left when its initial events are complete. */
export interface WatchListJob {
  readonly target: Target
  /** The collection, with a `?`. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** How many objects there are. */
  readonly objects: number
  readonly seconds: number
}

export interface WatchListResult {
  readonly answers: number
  readonly failures: Readonly<Record<string, number>>
  /** From the request to the bookmark. */
  readonly p50Ms: number
  readonly firstByteP50Ms: number
  readonly loadShare: number
}

const query =
  '&watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0&timeoutSeconds=600'

/** What marks the bookmark that closes the initial events, in JSON and protobuf alike. */
const mark = 'k8s.io/initial-events-end'

export async function watchList(job: WatchListJob): Promise<WatchListResult> {
  const failures = new Failures()
  const times: number[] = []
  const firstBytes: number[] = []
  const share = startShare()
  const end = performance.now() + job.seconds * 1000
  do {
    try {
      const { objects, ms, firstByteMs } = await once(job)
      if (objects !== job.objects) failures.add(`${objects} objects for ${job.objects}`)
      else {
        times.push(ms)
        firstBytes.push(firstByteMs)
      }
    } catch (error) {
      failures.add((error as Error).message)
    }
  } while (performance.now() < end)
  return {
    answers: times.length,
    failures: failures.counts(),
    p50Ms: percentile(times, 0.5),
    firstByteP50Ms: percentile(firstBytes, 0.5),
    loadShare: share(),
  }
}

async function once({
  target,
  path,
  headers,
}: WatchListJob): Promise<{ objects: number; ms: number; firstByteMs: number }> {
  const connection = await Connection.to(target)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let objects = 0
  let firstByteAt = 0
  const frames = new Frames(headers['Accept'] ?? '', (frame) => {
    if (frame.includes(mark)) resolve()
    else objects += 1
  })
  const began = performance.now()
  connection
    .ask(requestOf('GET', path + query, headers), {
      onHead: (status) => {
        if (status !== 200) reject(new Error(`watch: status ${status}`))
      },
      onBody: (bytes) => {
        firstByteAt ||= performance.now()
        frames.push(bytes)
      },
    })
    .then(() => reject(new Error('the watch ended')), reject)
  try {
    await promise
    return { objects, ms: performance.now() - began, firstByteMs: firstByteAt - began }
  } finally {
    connection.close()
  }
}
