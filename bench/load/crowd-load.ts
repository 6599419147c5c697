import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../measure/statistics.ts'
import { Connection, requestOf } from './connection.ts'
import { Failures } from './failures.ts'
import { Frames } from './frames.ts'
import { findStamp } from './stamp.ts'
import type { Target } from './target.ts'

/** Opens one watch for each of `paths`, each on a connection of its own, as a client of HTTP/1.1 has to. */
export interface CrowdJob {
  readonly target: Target
  readonly paths: readonly string[]
  readonly headers: Readonly<Record<string, string>>
}

/** Waits for the stamps in [from, to), each of which one watch is to see. */
export interface CrowdSeenJob {
  readonly from: number
  readonly to: number
  readonly patienceMs: number
}

export interface CrowdResult {
  readonly events: number
  readonly failures: Readonly<Record<string, number>>
  /** From the write's sending to the whole event's receipt. */
  readonly delayP50Ms: number
  readonly delayP99Ms: number
}

/** So many are opened at a time: a kubelet's pods do not all start in one moment either. */
const atATime = 32

/** What is open, and what it has seen. */
class Crowd {
  readonly #connections: Connection[] = []
  /** Of each stamp, when it was first received, in milliseconds after it was sent. */
  readonly delays = new Map<number, number>()
  /** Why watches ended, each counted, until `leave`. */
  readonly failures = new Failures()
  #left = false

  async open({ target, paths, headers }: CrowdJob): Promise<void> {
    const waiting = [...paths]
    const opener = async (): Promise<void> => {
      for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
        const connection = await Connection.to(target)
        this.#connections.push(connection)
        await this.#begin(connection, path, headers)
      }
    }
    await Promise.all(Array.from({ length: atATime }, opener))
  }

  /** Resolves with the head. */
  #begin(
    connection: Connection,
    path: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const frames = new Frames(headers['Accept'] ?? '', (frame) => {
      const stamp = findStamp(frame)
      if (stamp === undefined || this.delays.has(stamp.sequence)) return
      this.delays.set(stamp.sequence, Number(process.hrtime.bigint() - stamp.sentAt) / 1e6)
    })
    const request = requestOf('GET', `${path}&watch=true&timeoutSeconds=600`, headers)
    connection
      .ask(request, {
        onHead: (status) =>
          status === 200 ? resolve() : reject(new Error(`watch: status ${status}`)),
        onBody: (bytes) => frames.push(bytes),
      })
      .then(
        () => this.#ended('a watch ended'),
        (error: Error) => {
          this.#ended(error.message)
          reject(error)
        },
      )
    return promise
  }

  #ended(why: string): void {
    if (!this.#left) this.failures.add(why)
  }

  leave(): void {
    this.#left = true
    for (const connection of this.#connections) connection.close()
  }
}

let present: Crowd | undefined

/** Resolves when each watch has its head; they stay until `crowdSeen` has told of them or the next are opened. */
export async function crowd(job: CrowdJob): Promise<void> {
  present?.leave()
  present = new Crowd()
  await present.open(job)
}

/** Waits for the stamps asked for, tells how they came, and closes the watches. */
export async function crowdSeen({ from, to, patienceMs }: CrowdSeenJob): Promise<CrowdResult> {
  if (present === undefined) throw new Error('no watch is open')
  const { delays, failures } = present
  const wanted = Array.from({ length: to - from }, (_, at) => from + at)
  const end = performance.now() + patienceMs
  while (!wanted.every((each) => delays.has(each)) && performance.now() < end) await sleep(10)
  const seen = wanted.map((each) => delays.get(each)).filter((each) => each !== undefined)
  failures.add('an event was lost', wanted.length - seen.length)
  present.leave()
  present = undefined
  return {
    events: seen.length,
    failures: failures.counts(),
    delayP50Ms: percentile(seen, 0.5),
    delayP99Ms: percentile(seen, 0.99),
  }
}
