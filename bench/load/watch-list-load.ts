import { percentile } from '../measure/statistics.ts'
import { Connection, requestOf } from './connection.ts'
import { Failures, startShare } from './failures.ts'
import { Frames } from './frames.ts'
import { readList } from './list-body.ts'
import { fetchOnce } from './read-load.ts'
import type { Target } from './target.ts'

/**
 * WatchLists of one collection, one at a time and over again for `seconds`, each left when its
 * initial events are complete; or, where there are no objects to come, watches that go on from its
 * version, each left when it has begun.
 */
export interface WatchListJob {
  readonly target: Target
  /** The collection, with a `?`. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** How many objects a WatchList has; absent: watches that go on. */
  readonly objects?: number
  readonly seconds: number
}

export interface WatchListResult {
  readonly answers: number
  readonly failures: Readonly<Record<string, number>>
  /** From the request to the bookmark, or to the head of the answer. */
  readonly p50Ms: number
  /** To the head of the answer. */
  readonly firstByteP50Ms: number
  readonly loadShare: number
}

const query = '&watch=true&allowWatchBookmarks=true&timeoutSeconds=600'
const initialEvents =
  '&watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0&timeoutSeconds=600'

/** What marks the bookmark that closes the initial events, in JSON and protobuf alike. */
const mark = 'k8s.io/initial-events-end'

export async function watchList(job: WatchListJob): Promise<WatchListResult> {
  const failures = new Failures()
  const times: number[] = []
  const firstBytes: number[] = []
  const share = startShare()
  const version = job.objects === undefined ? await versionOf(job) : undefined
  const end = performance.now() + job.seconds * 1000
  do {
    try {
      const { objects, ms, firstByteMs } = await once(job, version)
      if (objects !== (job.objects ?? 0)) failures.add(`${objects} objects for ${job.objects}`)
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

async function versionOf({ target, path, headers }: WatchListJob): Promise<string> {
  const { status, body } = await fetchOnce({ target, path: `${path}&resourceVersion=0`, headers })
  if (status !== 200) throw new Error(`list: status ${status}`)
  return readList(headers['Accept'] ?? '', body).resourceVersion
}

async function once(
  { target, path, headers }: WatchListJob,
  version: string | undefined,
): Promise<{ objects: number; ms: number; firstByteMs: number }> {
  const connection = await Connection.to(target)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let objects = 0
  let firstByteAt = 0
  const frames = new Frames(headers['Accept'] ?? '', (frame) => {
    if (frame.includes(mark)) resolve()
    else objects += 1
  })
  const began = performance.now()
  const asked =
    version === undefined ? path + initialEvents : `${path}${query}&resourceVersion=${version}`
  connection
    .ask(requestOf('GET', asked, headers), {
      onHead: (status) => {
        firstByteAt ||= performance.now()
        if (status !== 200) reject(new Error(`watch: status ${status}`))
        else if (version !== undefined) resolve()
      },
      onBody: (bytes) => {
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
