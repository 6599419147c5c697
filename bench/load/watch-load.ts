import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../measure/statistics.ts'
import { Connection, requestOf } from './connection.ts'
import { Failures, startShare } from './failures.ts'
import { Frames } from './frames.ts'
import { readList } from './list-body.ts'
import { fetchOnce } from './read-load.ts'
import { findStamp } from './stamp.ts'
import type { Target } from './target.ts'

/** Lists and then watches as a reflector does, at `target` and beside it at `reference`. */
export interface WatchJob {
  readonly target: Target
  readonly reference: Target
  readonly headers: Readonly<Record<string, string>>
  /** Those of the watch at `reference`; absent: the same. */
  readonly referenceHeaders?: Readonly<Record<string, string>>
  /** The collection, with the query that selects from it. */
  readonly path: string
}

/** The stamps [from, to) to report. */
export interface WatchedJob {
  readonly from: number
  readonly to: number
  /** How long to wait for those that have not come. */
  readonly patienceMs: number
}

export interface WatchResult {
  readonly events: number
  readonly failures: Readonly<Record<string, number>>
  /** From the write's sending to the whole event's receipt. */
  readonly delayP50Ms: number
  readonly delayP99Ms: number
  /** By how much the same event came later than at the reference. */
  readonly addedP50Ms: number
  readonly addedP99Ms: number
  readonly loadShare: number
}

interface Seen {
  readonly sentAt: bigint
  readonly receivedAt: bigint
}

/** Many times what a head takes. */
const headPatienceMs = 500

/** One watch, and the first receipt of each stamp on it. */
class Watch {
  readonly seen = new Map<number, Seen>()
  readonly #connection: Connection
  broken: string | undefined

  /**
   * Resolves when the head of the watch has come, or after a while without: some proxies keep it
   * until the first event. Nothing is missed meanwhile, since a watch begins at the version of a
   * list.
   */
  static async open(target: Target, { path, headers }: WatchJob): Promise<Watch> {
    const version = await listVersion(target, path, headers)
    const watch = new Watch(await Connection.to(target))
    const query = `&watch=true&allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion=${version}`
    await watch.#begin(requestOf('GET', path + query, headers), headers['Accept'] ?? '')
    return watch
  }

  private constructor(connection: Connection) {
    this.#connection = connection
  }

  #begin(request: string, mediaType: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const frames = new Frames(mediaType, (frame) => {
      const receivedAt = process.hrtime.bigint()
      const stamp = findStamp(frame)
      if (stamp && !this.seen.has(stamp.sequence))
        this.seen.set(stamp.sequence, { sentAt: stamp.sentAt, receivedAt })
    })
    this.#connection
      .ask(request, {
        onHead: (status) =>
          status === 200 ? resolve() : reject(new Error(`watch: status ${status}`)),
        onBody: (bytes) => frames.push(bytes),
        mayBeSilent: true,
      })
      .then(
        () => {
          this.broken = 'the watch ended'
        },
        (error: Error) => {
          this.broken = error.message
          reject(error)
        },
      )
    return Promise.race([promise, sleep(headPatienceMs)])
  }

  close(): void {
    this.#connection.close()
  }
}

let watches: { watch: Watch; reference: Watch } | undefined
let share = startShare()

/** Opens both watches; they stay open until `watched` returns or the next are opened. */
export async function watch(job: WatchJob): Promise<void> {
  closeWatches()
  watches = {
    reference: await Watch.open(job.reference, {
      ...job,
      headers: job.referenceHeaders ?? job.headers,
    }),
    watch: await Watch.open(job.target, job),
  }
  share = startShare()
}

/** Waits for the requested stamps, returns their delays, and closes the watches. */
export async function watched({ from, to, patienceMs }: WatchedJob): Promise<WatchResult> {
  if (!watches) throw new Error('no watch is open')
  const loadShare = share()
  const both = watches
  const wanted = Array.from({ length: to - from }, (_, at) => from + at)
  const end = performance.now() + patienceMs
  const complete = (): boolean =>
    wanted.every((each) => both.watch.seen.has(each) && both.reference.seen.has(each))
  while (!complete() && performance.now() < end) await sleep(10)
  const { broken } = both.watch
  closeWatches()

  const failures = new Failures()
  if (broken !== undefined) failures.add(broken)
  const delays: number[] = []
  const added: number[] = []
  for (const sequence of wanted) {
    const seen = both.watch.seen.get(sequence)
    const reference = both.reference.seen.get(sequence)
    if (!seen) failures.add('an event was lost')
    else delays.push(milliseconds(seen.receivedAt - seen.sentAt))
    if (seen && reference) added.push(milliseconds(seen.receivedAt - reference.receivedAt))
  }
  return {
    events: delays.length,
    failures: failures.counts(),
    delayP50Ms: percentile(delays, 0.5),
    delayP99Ms: percentile(delays, 0.99),
    addedP50Ms: percentile(added, 0.5),
    addedP99Ms: percentile(added, 0.99),
    loadShare,
  }
}

function closeWatches(): void {
  watches?.watch.close()
  watches?.reference.close()
  watches = undefined
}

const milliseconds = (nanoseconds: bigint): number => Number(nanoseconds) / 1e6

/**
 * Lists the collection, as what is going to watch it does, and answers the version to watch it
 * from.
 */
async function listVersion(
  target: Target,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<string> {
  const list = await fetchOnce({ target, path: `${path}&resourceVersion=0`, headers })
  if (list.status !== 200) throw new Error(`list: status ${list.status}`)
  return readList(headers['Accept'] ?? '', list.body).resourceVersion
}
