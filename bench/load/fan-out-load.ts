import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../measure/statistics.ts'
import { Connection, requestOf } from './connection.ts'
import { Failures, startShare } from './failures.ts'
import { Frames } from './frames.ts'
import { readList } from './list-body.ts'
import { fetchOnce } from './read-load.ts'
import { findStamp } from './stamp.ts'
import type { Target } from './target.ts'

/** Opens `count` watches of one collection, each on a connection of its own, all from the version of one list. */
export interface FanOutJob {
  readonly target: Target
  /** The collection, with a `?`. */
  readonly path: string
  readonly count: number
  readonly headers: Readonly<Record<string, string>>
}

/** Waits for the stamps in [from, to), each of which every watch is to see. */
export interface FanOutSeenJob {
  readonly from: number
  readonly to: number
  readonly patienceMs: number
}

export interface FanOutResult {
  readonly deliveries: number
  readonly failures: Readonly<Record<string, number>>
  /** From the write's sending to the whole event's receipt, over all watches. */
  readonly delayP50Ms: number
  readonly delayP99Ms: number
  readonly loadShare: number
}

/** So many are opened at a time. */
const atATime = 32

class FanOut {
  readonly #connections: Connection[] = []
  /** Of each stamp, the delays of its deliveries in milliseconds. */
  readonly delays = new Map<number, number[]>()
  readonly failures = new Failures()
  readonly share = startShare()
  readonly count: number
  #left = false

  constructor(count: number) {
    this.count = count
  }

  async open({ target, path, headers }: FanOutJob): Promise<void> {
    const listed = await fetchOnce({ target, path: `${path}&resourceVersion=0`, headers })
    if (listed.status !== 200) throw new Error(`list: status ${listed.status}`)
    const { resourceVersion } = readList(headers['Accept'] ?? '', listed.body)
    const query = `&watch=true&allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion=${resourceVersion}`
    const request = requestOf('GET', path + query, headers)
    let waiting = this.count
    const opener = async (): Promise<void> => {
      while (waiting > 0) {
        waiting -= 1
        const connection = await Connection.to(target)
        this.#connections.push(connection)
        await this.#begin(connection, request, headers['Accept'] ?? '')
      }
    }
    await Promise.all(Array.from({ length: atATime }, opener))
  }

  /** Resolves with the head. */
  #begin(connection: Connection, request: string, mediaType: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    let last = -1
    const frames = new Frames(mediaType, (frame) => {
      const stamp = findStamp(frame)
      if (stamp === undefined) return
      // Writes are sent at their time and may overtake each other by a few, but none comes twice.
      if (stamp.sequence === last) this.failures.add('an event came twice')
      last = stamp.sequence
      const delays = this.delays.get(stamp.sequence) ?? []
      delays.push(Number(process.hrtime.bigint() - stamp.sentAt) / 1e6)
      this.delays.set(stamp.sequence, delays)
    })
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

let present: FanOut | undefined

/** Resolves when each watch has its head; they stay until `fanOutSeen` has told of them or the next are opened. */
export async function fanOut(job: FanOutJob): Promise<void> {
  present?.leave()
  present = new FanOut(job.count)
  await present.open(job)
}

/** Waits for the stamps asked for, tells how they came, and closes the watches. */
export async function fanOutSeen({ from, to, patienceMs }: FanOutSeenJob): Promise<FanOutResult> {
  if (present === undefined) throw new Error('no watch is open')
  const { delays, failures, count, share } = present
  const loadShare = share()
  const wanted = Array.from({ length: to - from }, (_, at) => from + at)
  const end = performance.now() + patienceMs
  const complete = (): boolean => wanted.every((each) => (delays.get(each)?.length ?? 0) >= count)
  while (!complete() && performance.now() < end) await sleep(10)
  const seen = wanted.flatMap((each) => delays.get(each) ?? [])
  failures.add('an event was lost to a watch', wanted.length * count - seen.length)
  present.leave()
  present = undefined
  return {
    deliveries: seen.length,
    failures: failures.counts(),
    delayP50Ms: percentile(seen, 0.5),
    delayP99Ms: percentile(seen, 0.99),
    loadShare,
  }
}
