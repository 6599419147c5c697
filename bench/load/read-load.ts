import { percentile } from '../measure/statistics.ts'
import { Connection, requestOf } from './connection.ts'
import { Failures, startShare } from './failures.ts'
import { readList } from './list-body.ts'
import type { Target } from './target.ts'

/**
 * Asks for `paths`, one after the other and over again, on each of `connections` at a time, for
 * `seconds`.
 */
export interface ReadJob {
  readonly target: Target
  readonly headers: Readonly<Record<string, string>>
  readonly paths: readonly string[]
  /** How long the body at each path is. An answer of another length counts as a failure. */
  readonly bytes: readonly number[]
  /** By how many bytes it may differ. */
  readonly slack: number
  readonly connections: number
  readonly seconds: number
}

/** The tolerance for repeated lists: their resource version may grow by a digit. */
export const listSlack = 4

export interface ReadResult {
  /** Answers received whole, with status 200 and of the right length. */
  readonly answers: number
  readonly failures: Readonly<Record<string, number>>
  /** From the first request to the last answer. */
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly firstByteP50Ms: number
  readonly loadShare: number
}

/** A closed loop: each connection sends its next request after an answer. */
export async function read(job: ReadJob): Promise<ReadResult> {
  const requests = job.paths.map((path) => requestOf('GET', path, job.headers))
  const open = await Promise.all(
    Array.from({ length: job.connections }, () => Connection.to(job.target)),
  )
  const failures = new Failures()
  const times: number[] = []
  const firstBytes: number[] = []
  const share = startShare()
  const begun = performance.now()
  const end = begun + job.seconds * 1000
  let next = 0

  const work = async (first: Connection): Promise<void> => {
    let connection = first
    while (performance.now() < end) {
      const at = next++ % requests.length
      try {
        const answer = await connection.ask(requests[at] ?? '')
        const wanted = job.bytes[at] ?? 0
        if (answer.status !== 200) failures.add(`status ${answer.status}`)
        else if (Math.abs(answer.bytes - wanted) > job.slack)
          failures.add(`${answer.bytes} bytes for ${wanted}`)
        else {
          times.push(answer.ms)
          firstBytes.push(answer.firstByteMs)
        }
      } catch (error) {
        failures.add((error as Error).message)
        connection = await Connection.to(job.target)
      }
    }
    connection.close()
  }
  await Promise.all(open.map(work))

  return {
    answers: times.length,
    failures: failures.counts(),
    seconds: (performance.now() - begun) / 1000,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    firstByteP50Ms: percentile(firstBytes, 0.5),
    loadShare: share(),
  }
}

export interface FetchJob {
  readonly target: Target
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** One answer with its body. */
export async function fetchOnce({
  target,
  path,
  headers,
}: FetchJob): Promise<{ status: number; body: Uint8Array; ms: number }> {
  const connection = await Connection.to(target)
  const chunks: Buffer[] = []
  const { status, ms } = await connection.ask(requestOf('GET', path, headers), {
    onBody: (bytes) => chunks.push(Buffer.from(bytes)),
  })
  connection.close()
  return { status, body: Buffer.concat(chunks), ms }
}

/** What a list comes to, without handing it over. Throws where the answer is no whole list. */
export async function countItems(
  job: FetchJob,
): Promise<{ status: number; bytes: number; items: number; ms: number }> {
  const { status, body, ms } = await fetchOnce(job)
  const items = status === 200 ? readList(job.headers['Accept'] ?? '', body).items : 0
  return { status, bytes: body.length, items, ms }
}

export interface SizesJob {
  readonly target: Target
  readonly paths: readonly string[]
  readonly headers: Readonly<Record<string, string>>
}

/** How long the body at each path is. Throws where the answer is not a 200. */
export async function sizesOf({ target, paths, headers }: SizesJob): Promise<number[]> {
  const connection = await Connection.to(target)
  const sizes: number[] = []
  for (const path of paths) {
    const { status, bytes } = await connection.ask(requestOf('GET', path, headers))
    if (status !== 200) throw new Error(`GET ${path} at ${target.url}: status ${status}`)
    sizes.push(bytes)
  }
  connection.close()
  return sizes
}
