import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../measure/statistics.ts'
import { requestOf } from './connection.ts'
import { startShare, type Failures } from './failures.ts'
import { Frames } from './frames.ts'
import { OpenWatches } from './open-watches.ts'
import { readList } from './list-body.ts'
import { fetchOnce } from './read-load.ts'
import { findStamp } from './stamp.ts'
import type { Target } from './target.ts'

/**
 * Opens `count` watches of one collection, each on a connection of its own, all from the version of
 * one list.
 */
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

class FanOut {
  readonly #watches = new OpenWatches()
  /** Of each stamp, the delays of its deliveries in milliseconds. */
  readonly delays = new Map<number, number[]>()
  readonly share = startShare()
  readonly count: number

  constructor(count: number) {
    this.count = count
  }

  get failures(): Failures {
    return this.#watches.failures
  }

  async open({ target, path, headers }: FanOutJob): Promise<void> {
    const listed = await fetchOnce({ target, path: `${path}&resourceVersion=0`, headers })
    if (listed.status !== 200) throw new Error(`list: status ${listed.status}`)
    const { resourceVersion } = readList(headers['Accept'] ?? '', listed.body)
    const query = `&watch=true&allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion=${resourceVersion}`
    const requests = Array.from({ length: this.count }, () =>
      requestOf('GET', path + query, headers),
    )
    const frames = requests.map(() => this.#frames(headers['Accept'] ?? ''))
    await this.#watches.open(target, requests, (bytes, at) => frames[at]?.push(bytes))
  }

  /** Of one watch. */
  #frames(mediaType: string): Frames {
    let last = -1
    return new Frames(mediaType, (frame) => {
      const stamp = findStamp(frame)
      if (stamp === undefined) return
      // Writes are sent at their time and may overtake each other by a few, but none comes twice.
      if (stamp.sequence === last) this.failures.add('an event came twice')
      last = stamp.sequence
      const delays = this.delays.get(stamp.sequence) ?? []
      delays.push(Number(process.hrtime.bigint() - stamp.sentAt) / 1e6)
      this.delays.set(stamp.sequence, delays)
    })
  }

  leave(): void {
    this.#watches.leave()
  }
}

let present: FanOut | undefined

/**
 * Resolves when each watch has its head; the watches stay open until `fanOutSeen` returns or the
 * next are opened.
 */
export async function fanOut(job: FanOutJob): Promise<void> {
  present?.leave()
  present = new FanOut(job.count)
  await present.open(job)
}

/** Waits for the requested stamps, returns their delays, and closes the watches. */
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
