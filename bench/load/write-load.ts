import { setTimeout as sleep } from 'node:timers/promises'
import { Connection, requestOf } from './connection.ts'
import { Failures } from './failures.ts'
import { stampAnnotation, stampText } from './stamp.ts'
import type { Target } from './target.ts'

/**
 * Stamps objects with merge patches at a steady rate; slower only while all connections wait for
 * the API server.
 */
export interface WriteJob {
  readonly target: Target
  /** Of the objects, taken in turn. */
  readonly paths: readonly string[]
  /** The number of the first stamp. */
  readonly from: number
  readonly count: number
  readonly perSecond: number
}

export interface WriteResult {
  readonly failures: Readonly<Record<string, number>>
  readonly seconds: number
}

/** As many as answers may be late at a time. */
const connectionCount = 32

export async function write(job: WriteJob): Promise<WriteResult> {
  const idle = await Promise.all(
    Array.from({ length: connectionCount }, () => Connection.to(job.target)),
  )
  const failures = new Failures()
  const under: Promise<void>[] = []
  const begun = performance.now()
  for (let at = 0; at < job.count; at += 1) {
    const wait = begun + (at * 1000) / job.perSecond - performance.now()
    if (wait > 0) await sleep(wait)
    while (idle.length === 0) await sleep(1)
    const connection = idle.pop()
    if (connection) under.push(patch(connection, job, job.from + at))
  }
  const rate = (job.count * 1000) / (performance.now() - begun)
  if (rate < 0.9 * job.perSecond) failures.add('the API server did not take the writes in time')
  await Promise.all(under)
  for (const connection of idle) connection.close()
  return { failures: failures.counts(), seconds: (performance.now() - begun) / 1000 }

  async function patch(
    connection: Connection,
    { paths }: WriteJob,
    sequence: number,
  ): Promise<void> {
    const path = paths[sequence % paths.length] ?? ''
    const stamp = stampText({ sequence, sentAt: process.hrtime.bigint() })
    const body = JSON.stringify({ metadata: { annotations: { [stampAnnotation]: stamp } } })
    const headers = { Accept: 'application/json', 'Content-Type': 'application/merge-patch+json' }
    try {
      const { status } = await connection.ask(requestOf('PATCH', path, headers, body))
      if (status !== 200) failures.add(`a write got status ${status}`)
      idle.push(connection)
    } catch (error) {
      failures.add(`a write failed: ${(error as Error).message}`)
      idle.push(await Connection.to(job.target))
    }
  }
}
