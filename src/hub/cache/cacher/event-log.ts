import { versionOf, type ObjectEvent, type WatchEvent } from '../../../api/codec/watch.ts'
import { isNewer, resourceVersion } from '../../../api/kube/resource-version.ts'

/** What arrived together, and was committed together. */
export interface EventGroup {
  readonly events: readonly ObjectEvent[]
  /** Of its last event. */
  readonly version: string
  readonly bytes: number
}

export interface LogBounds {
  readonly groups: number
  readonly bytes: number
}

/** What an event takes besides its bytes. */
const overhead = 256

/**
 * The latest events of one collection, oldest first, for any number of readers, none of which it
 * knows: each has a cursor, and reads when it likes what is still there.
 */
export class EventLog {
  readonly #bounds: LogBounds
  readonly #groups: EventGroup[] = []
  /** How many groups were let go. */
  #dropped = 0
  #bytes = 0
  #tail: string
  #version: string

  /**
   * Begins at `version`, of which everything is known. What cannot be compared with it follows in
   * no log: it stays empty then.
   */
  constructor(version: string, bounds: LogBounds) {
    this.#bounds = bounds
    this.#tail = version
    this.#version = version
  }

  /** The version up to which all is known. */
  get version(): string {
    return this.#version
  }

  /** The version after which all events are here. */
  get tail(): string {
    return this.#tail
  }

  /** The cursor of what comes next. */
  get end(): number {
    return this.#dropped + this.#groups.length
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * Adds what is newer than all that is here, each event with its bytes copied out of the chunk it
   * came in.
   */
  append(events: readonly WatchEvent[]): boolean {
    const before = this.#version
    const news: ObjectEvent[] = []
    for (const event of events) {
      const version = versionOf(event)
      if (event.type === 'ERROR' || version === undefined || !isNewer(version, this.#version))
        continue
      this.#version = version
      if (event.type !== 'BOOKMARK') news.push(copied(event))
    }
    const last = resourceVersion(news.at(-1)?.object.resourceVersion)
    if (last !== undefined) {
      const bytes = news.reduce((sum, event) => sum + sizeOf(event), 0)
      this.#groups.push({ events: news, version: last, bytes })
      this.#bytes += bytes
      this.#trim()
    }
    return this.#version !== before
  }

  /** The newest group stays, however large. */
  #trim(): void {
    while (
      this.#groups.length > 1 &&
      (this.#groups.length > this.#bounds.groups || this.#bytes > this.#bounds.bytes)
    ) {
      this.#dropOldest()
    }
  }

  /** Lets go of the oldest events until they take `bytes` at most. */
  shrink(bytes: number): void {
    while (this.#groups.length > 0 && this.#bytes > bytes) this.#dropOldest()
  }

  #dropOldest(): void {
    const oldest = this.#groups.shift()
    if (!oldest) return
    this.#dropped += 1
    this.#bytes -= oldest.bytes
    this.#tail = oldest.version
  }

  /** What is at a cursor; `gone`: it was let go; `undefined`: it has not come yet. */
  at(cursor: number): EventGroup | 'gone' | undefined {
    return cursor < this.#dropped ? 'gone' : this.#groups[cursor - this.#dropped]
  }

  /**
   * Where to begin to read all events after `version`, which may be among others; `undefined`: they
   * are not all here any more.
   */
  after(version: string): number | undefined {
    if (version === this.#version) return this.end
    if (version !== this.#tail && !isNewer(version, this.#tail)) return undefined
    let [low, high] = [0, this.#groups.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const group = this.#groups[middle]
      if (group && !isNewer(group.version, version)) low = middle + 1
      else high = middle
    }
    return this.#dropped + low
  }
}

/** The same event in memory of its own: what it came in may be far larger. */
function copied(event: ObjectEvent): ObjectEvent {
  const { frame, object } = event
  if (!frame) return { ...event, object: { ...object, bytes: Buffer.from(object.bytes) } }
  const own = Buffer.from(frame)
  const { bytes } = object
  const from = bytes.byteOffset - frame.byteOffset
  const within =
    bytes.buffer === frame.buffer && from >= 0 && from + bytes.byteLength <= frame.byteLength
  const body = within ? own.subarray(from, from + bytes.byteLength) : Buffer.from(bytes)
  return { ...event, frame: own, object: { ...object, bytes: body } }
}

const sizeOf = ({ frame, object, previous }: ObjectEvent): number =>
  overhead +
  (frame ? frame.byteLength : object.bytes.byteLength) +
  (previous ? previous.bytes.byteLength : 0)
