import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../measure/statistics.ts'
import { requestOf } from './connection.ts'
import type { Failures } from './failures.ts'
import { Frames } from './frames.ts'
import { OpenWatches } from './open-watches.ts'
import { findStamp } from './stamp.ts'
import type { Target } from './target.ts'

/**
 * Opens one watch for each of `paths`, each on a connection of its own, as a client of HTTP/1.1 has
 * to.
 */
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

/** What is open, and what it has seen. */
class Crowd {
  readonly #watches = new OpenWatches()
  /** Of each stamp, when it was first received, in milliseconds after it was sent. */
  readonly delays = new Map<number, number>()

  get failures(): Failures {
    return this.#watches.failures
  }

  open({ target, paths, headers }: CrowdJob): Promise<void> {
    const requests = paths.map((path) =>
      requestOf('GET', `${path}&watch=true&timeoutSeconds=600`, headers),
    )
    const frames = paths.map(
      () =>
        new Frames(headers['Accept'] ?? '', (frame) => {
          const stamp = findStamp(frame)
          if (stamp === undefined || this.delays.has(stamp.sequence)) return
          this.delays.set(stamp.sequence, Number(process.hrtime.bigint() - stamp.sentAt) / 1e6)
        }),
    )
    return this.#watches.open(target, requests, (bytes, at) => frames[at]?.push(bytes))
  }

  leave(): void {
    this.#watches.leave()
  }
}

let present: Crowd | undefined

/**
 * Resolves when each watch has its head; the watches stay open until `crowdSeen` returns or the
 * next are opened.
 */
export async function crowd(job: CrowdJob): Promise<void> {
  present?.leave()
  present = new Crowd()
  await present.open(job)
}

/** Waits for the requested stamps, returns their delays, and closes the watches. */
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
