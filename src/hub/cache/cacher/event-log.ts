import { unpinned } from '../../../base/bytes.ts'
import {
  isObjectEvent,
  versionOf,
  type ObjectEvent,
  type UnreadEvent,
  type WatchEvent,
} from '../../../api/codec/watch.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'

/** What is sent to each client: an event of an object, or one that is passed on as received. */
type LoggedEvent = ObjectEvent | UnreadEvent

/** Events that arrived together, and were committed together. */
interface EventGroup {
  readonly events: readonly LoggedEvent[]
  /** The version of the last event of an object, in this group or before. */
  readonly version: string
  readonly bytes: number
}

/** The memory of an event besides its bytes. */
const overhead = 256

/** The states before events, if known, by their place among these. */
export type PreviousStates = readonly (ApiObject | undefined)[]

/** The memory of the events of several logs. */
export interface EventMemory {
  bytes: number
  readonly most: number
  /** Called whenever a log has grown and they take more than `most`. */
  readonly onFull: () => void
}

/**
 * The latest events of one collection, oldest first, for any number of cache watchers. Each has a
 * cursor, and reads at its own pace what the log still has.
 */
export class EventLog {
  readonly #groups: EventGroup[] = []
  readonly #memory: EventMemory | undefined
  /** The number of groups dropped. */
  #dropped = 0
  #bytes = 0
  /**
   * The log has all events after it, but for the gap: the version before the oldest, or of a list.
   */
  #tail: string
  #version: string
  /** The versions between which events are missing, both exclusive, as of the last list. */
  #gap: readonly [from: string, to: string] | undefined

  /**
   * Begins at `version`; nothing has changed after `tail`. A log whose version does not compare
   * stays empty.
   */
  constructor(version: string, tail = version, memory?: EventMemory) {
    this.#tail = tail
    this.#version = version
    this.#memory = memory
  }

  /** The version of the newest event, bookmark or list. */
  get version(): string {
    return this.#version
  }

  /** The cursor of the next group. */
  get end(): number {
    return this.#dropped + this.#groups.length
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * Adds the events that are newer than the log, and those that are passed on as received, each
   * without the rest of the chunk that it came in.
   */
  append(events: readonly WatchEvent[], previous: PreviousStates = []): void {
    const added: LoggedEvent[] = []
    let last = this.#groups.at(-1)?.version ?? this.#tail
    for (const [at, event] of events.entries()) {
      if (event.type === 'UNREAD') added.push({ ...event, frame: unpinned(event.frame) })
      const version = versionOf(event)
      if (version === undefined || !isNewer(version, this.#version)) continue
      this.#version = version
      if (!isObjectEvent(event)) continue
      last = version
      added.push(copied(event, previous[at]))
    }
    if (added.length === 0) return
    const bytes = added.reduce((sum, event) => sum + sizeOf(event), 0)
    this.#groups.push({ events: added, version: last, bytes })
    this.#grow(bytes)
  }

  /** Its readers may go on, and its memory no longer counts. */
  close(): void {
    if (this.#memory) this.#memory.bytes -= this.#bytes
  }

  #grow(bytes: number): void {
    this.#bytes += bytes
    const memory = this.#memory
    if (!memory) return
    memory.bytes += bytes
    if (bytes > 0 && memory.bytes > memory.most) memory.onFull()
  }

  /**
   * Goes on at `version`, up to which nothing has changed in the end, as a list has shown. What
   * came and went meanwhile is not known. Nothing before an earlier such list is read.
   */
  skip(version: string): void {
    const earlier = this.#gap?.[1]
    if (earlier !== undefined && isNewer(earlier, this.#tail)) this.#tail = earlier
    this.#gap = [this.#version, version]
    this.#version = version
  }

  /** Whether a client at this version may have observed what the log does not know. */
  skips(version: string): boolean {
    if (!this.#gap) return false
    const [from, to] = this.#gap
    return isNewer(version, from) && isNewer(to, version)
  }

  /** Drops the oldest events until the rest takes `bytes` at most. */
  shrink(bytes: number): void {
    while (this.#bytes > bytes) {
      const oldest = this.#groups.shift()
      if (!oldest) return
      this.#dropped += 1
      this.#grow(-oldest.bytes)
      if (isNewer(oldest.version, this.#tail)) this.#tail = oldest.version
    }
  }

  /**
   * The group at a cursor; `dropped`: the log no longer has it; `undefined`: it has not come yet.
   */
  at(cursor: number): EventGroup | 'dropped' | undefined {
    return cursor < this.#dropped ? 'dropped' : this.#groups[cursor - this.#dropped]
  }

  /**
   * The cursor from which to read all events after `version`; `undefined`: the log no longer has
   * them all. The first group may have older events as well.
   */
  after(version: string): number | undefined {
    if (version === this.#version) return this.end
    if (version !== this.#tail && !isNewer(version, this.#tail)) return undefined
    if (this.skips(version)) return undefined
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

/**
 * The same event without the rest of the chunk that it came in, and of what its previous state was
 * read with, which may be far larger.
 */
function copied(received: ObjectEvent, before: ApiObject | undefined): ObjectEvent {
  const previous = before && { ...before, bytes: unpinned(before.bytes) }
  const event = previous ? { ...received, previous } : received
  const { frame, object } = event
  const { bytes } = object
  if (!frame) return { ...event, object: { ...object, bytes: unpinned(bytes) } }
  const own = unpinned(frame)
  const from = bytes.byteOffset - frame.byteOffset
  const within =
    bytes.buffer === frame.buffer && from >= 0 && from + bytes.byteLength <= frame.byteLength
  const body = within ? own.subarray(from, from + bytes.byteLength) : unpinned(bytes)
  return { ...event, frame: own, object: { ...object, bytes: body } }
}

function sizeOf(event: LoggedEvent): number {
  if (event.type === 'UNREAD') return overhead + event.frame.byteLength
  const { frame, object, previous } = event
  return (
    overhead +
    (frame?.byteLength ?? 0) +
    (frame?.buffer === object.bytes.buffer ? 0 : object.bytes.byteLength) +
    (previous?.bytes.byteLength ?? 0)
  )
}
