import type { ObjectEvent } from '../../../api/codec/watch.ts'
import { isInGap, isNewer, type VersionGap } from '../../../api/kube/resource-version.ts'
import type { Held } from './held.ts'
import { isAtLeast } from './versions.ts'

/**
 * The bounds of an event log. As an API server's watch cache (apiserver
 * pkg/storage/cacher/watch_cache.go), it grows while its oldest event is younger than 75 seconds,
 * so that a client that gets only bookmarks, once a minute, finds its version; and it shrinks to
 * the last hundred.
 */
export const freshEventMs = 75_000
export const minEvents = 100
export const maxEvents = 2_000
export const maxEventBytes = 1 << 20
/** Beyond this number, the two oldest gaps are merged. */
const maxGaps = 8

export interface LoggedEvent {
  readonly type: ObjectEvent['type']
  readonly at: number
  readonly object: Held
  readonly previous: Held | undefined
}

/**
 * The events of a collection after the version `from`. A log that cannot be continued is restarted,
 * so that a client at an older version has to list: the log never skips an event.
 *
 * A list without changes keeps the log readable for clients at the version before it, and at its
 * own. A client at a version in between was sent an event that has been undone since, and which the
 * log does not have: that is a gap.
 */
export class EventLog {
  from = ''
  gaps: readonly VersionGap[] = []
  events: LoggedEvent[] = []
  bytes = 0

  /** Adds an event, which must be newer than all before it. */
  add(event: LoggedEvent): void {
    event.object.body.hold()
    event.previous?.body.hold()
    this.events.push(event)
    this.bytes += event.object.body.length
  }

  /** Removes the oldest events beyond the bounds, as of the time `at`. */
  trim(at: number): void {
    for (let event = this.events[0]; event; event = this.events[0]) {
      const count = this.events.length
      const isOver = count > maxEvents || this.bytes > maxEventBytes
      if (!isOver && (count <= minEvents || event.at >= at - freshEventMs)) return
      this.#release(event)
      this.events.shift()
      this.from = event.object.version
      this.gaps = this.gaps.filter(([, to]) => isNewer(to, this.from))
    }
  }

  /** From now on the log has the events after `version`, and none before. */
  restart(version: string): void {
    for (const event of this.events) this.#release(event)
    this.events = []
    this.gaps = []
    this.from = version
  }

  /** A list at `version`, newer than the collection at `before`, brought no change. */
  unchanged(before: string, version: string): void {
    const gaps: VersionGap[] = [...this.gaps, [before, version]]
    const [[from] = [''], [, to] = ['', ''], ...rest] = gaps
    this.gaps = gaps.length > maxGaps ? [[from, to], ...rest] : gaps
  }

  /** The events after `since` of the collection at `version`; `undefined`: not all are stored. */
  since(since: string, version: string): readonly LoggedEvent[] | undefined {
    if (isAtLeast(since, version)) return []
    if (!isAtLeast(since, this.from) || !isNewer(version, since)) return undefined
    if (isInGap(since, this.gaps)) return undefined
    return this.events.filter(({ object }) => isNewer(object.version, since))
  }

  #release({ object, previous }: LoggedEvent): void {
    this.bytes -= object.body.length
    object.body.release()
    previous?.body.release()
  }
}
