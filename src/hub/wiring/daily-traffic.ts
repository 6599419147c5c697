import { every, now } from '../../base/clock.ts'
import { StateFile, storedEntries } from '../../base/state-file.ts'
import type { Traffic, TrafficBytes, TrafficLabels } from '../../metrics/traffic.ts'

/** The bytes of bodies of one component and resource on one day. */
export interface TrafficRow extends TrafficBytes {
  /** In UTC, as `2026-11-23`. */
  readonly day: string
  readonly component: string
  /** Empty for requests that are not about a resource. */
  readonly resource: string
}

/** Today and the days before it. */
export const mostDays = 31

/** Beyond so many pairs of component and resource a day, the rest counts as `other`. */
export const mostPairs = 128

/** A crash loses the counts of this time at most. */
const writeMs = 5 * 60_000

const dayMs = 24 * 60 * 60_000

/** The content of the file of `DailyTraffic`. */
export const storedTraffic = (file: string): readonly TrafficRow[] =>
  storedEntries(file, isEntry).map(fromEntry)

interface DailyTrafficOptions {
  /** All that is counted; the labels of a series are the same object each time. */
  readonly counted: () => Iterable<readonly [TrafficLabels, Traffic]>
  readonly onFailure: (cause: unknown) => void
}

/**
 * The traffic of each day, kept in `file` across restarts: counts are added to the day on which
 * they are read. Rows of a day that a wrong clock has put into the future are dropped.
 */
export class DailyTraffic implements AsyncDisposable {
  readonly #file: StateFile
  readonly #options: DailyTrafficOptions
  readonly #rows = new Map<string, TrafficRow>()
  /** The counts of each series that are in a row already. */
  readonly #added = new Map<TrafficLabels, TrafficBytes>()
  readonly #writing: Disposable
  #changed = false

  constructor(file: string, options: DailyTrafficOptions) {
    this.#options = options
    this.#file = new StateFile(file, () => JSON.stringify(this.rows().map(toEntry)))
    for (const row of storedTraffic(file)) this.#rows.set(keyOf(row), row)
    this.#writing = every(writeMs, () => void this.write())
  }

  /** Today first; within a day the largest first. */
  rows(): readonly TrafficRow[] {
    this.#add()
    return [...this.#rows.values()].toSorted(
      (a, b) => b.day.localeCompare(a.day) || sumOf(b) - sumOf(a),
    )
  }

  /** Resolves once all changes are on the disk, or cannot be written. */
  async write(): Promise<void> {
    this.#add()
    if (!this.#changed) return
    this.#changed = false
    await this.#file.write().catch((cause: unknown) => {
      this.#changed = true
      this.#options.onFailure(cause)
    })
  }

  #add(): void {
    const day = dayOf(now())
    for (const [labels, traffic] of this.#options.counted()) {
      const before = this.#added.get(labels) ?? nothing
      const added = differenceOf(traffic, before)
      if (sumOf(added) === 0) continue
      this.#added.set(labels, differenceOf(traffic, nothing))
      this.#addTo({ day, component: labels.client, resource: labels.resource }, added)
      this.#changed = true
    }
    const [first, last] = [dayOf(now() - (mostDays - 1) * dayMs), dayOf(now() + dayMs)]
    for (const [key, row] of this.#rows) {
      if (row.day < first || row.day > last) this.#rows.delete(key)
    }
  }

  #addTo(of: Pick<TrafficRow, 'day' | 'component' | 'resource'>, added: TrafficBytes): void {
    const isFull = !this.#rows.has(keyOf(of)) && this.#pairsOn(of.day) >= mostPairs
    const to = isFull ? { day: of.day, component: 'other', resource: 'other' } : of
    const before = this.#rows.get(keyOf(to)) ?? nothing
    this.#rows.set(keyOf(to), { ...to, ...sum(before, added) })
  }

  #pairsOn(day: string): number {
    return this.#rows.values().reduce((pairs, row) => pairs + Number(row.day === day), 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#writing[Symbol.dispose]()
    await this.write()
    await this.#file[Symbol.asyncDispose]()
  }
}

const nothing: TrafficBytes = { receivedBytes: 0, sentBytes: 0, requestBytes: 0, answerBytes: 0 }

const sum = (a: TrafficBytes, b: TrafficBytes): TrafficBytes => ({
  receivedBytes: a.receivedBytes + b.receivedBytes,
  sentBytes: a.sentBytes + b.sentBytes,
  requestBytes: a.requestBytes + b.requestBytes,
  answerBytes: a.answerBytes + b.answerBytes,
})

const differenceOf = (a: TrafficBytes, b: TrafficBytes): TrafficBytes => ({
  receivedBytes: a.receivedBytes - b.receivedBytes,
  sentBytes: a.sentBytes - b.sentBytes,
  requestBytes: a.requestBytes - b.requestBytes,
  answerBytes: a.answerBytes - b.answerBytes,
})

const sumOf = (bytes: TrafficBytes): number =>
  bytes.receivedBytes + bytes.sentBytes + bytes.requestBytes + bytes.answerBytes

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

const keyOf = ({ day, component, resource }: Pick<TrafficRow, 'day' | 'component' | 'resource'>) =>
  `${day} ${component} ${resource}`

type Entry = readonly [
  day: string,
  component: string,
  resource: string,
  received: number,
  sent: number,
  request: number,
  answer: number,
]

const toEntry = (row: TrafficRow): Entry => [
  row.day,
  row.component,
  row.resource,
  row.receivedBytes,
  row.sentBytes,
  row.requestBytes,
  row.answerBytes,
]

const fromEntry = ([day, component, resource, ...bytes]: Entry): TrafficRow => {
  const [receivedBytes, sentBytes, requestBytes, answerBytes] = bytes
  return { day, component, resource, receivedBytes, sentBytes, requestBytes, answerBytes }
}

const isEntry = (entry: unknown): entry is Entry =>
  Array.isArray(entry) &&
  entry.length === 7 &&
  entry.slice(0, 3).every((each) => typeof each === 'string') &&
  /^\d{4}-\d\d-\d\d$/.test(entry[0]) &&
  entry.slice(3).every((each) => Number.isSafeInteger(each) && each >= 0)
