import { after } from '../../../base/clock.ts'
import type { LogFolder } from './folder.ts'
import { bodiesAt, encode, framed, type Encoded } from './frame.ts'
import type { SegmentRecord } from './record.ts'
import type { Segment } from './body.ts'

/** The format that this release writes, and the newest one that it reads. */
export const format = 1

export interface LogWriterParts {
  readonly folder: LogFolder
  readonly segmentBytes: number
  /** How long a write may stay unsynced. */
  readonly syncWithinMs: number
  /** Called before a segment is begun; rejects where that may not be. */
  readonly prepare: () => Promise<void>
  /** A late sync failed. */
  readonly onSyncFailed: (cause: unknown) => void
}

/** Where the bodies of a frame lie. */
export interface Place {
  readonly segment: Segment
  readonly offset: number
}

/** The writes since the start. */
export interface DiskWork {
  readonly bytes: number
  readonly syncs: number
}

/**
 * Appends frames to the log. After a failure the segment is given up, as it may end in a part of
 * what was refused: the next one says where it ends.
 */
export class LogWriter {
  readonly work = { bytes: 0, syncs: 0 }
  /** The first segment of which the records count. */
  from: number
  /** Syncs that failed: what came after the one before may be lost. */
  losses = 0
  /** As many of them as there were when it was begun to write the log anew. */
  repaired = 0
  readonly #parts: LogWriterParts
  #current: Segment | undefined
  /** The segment before, where not all of it may be on the disk. */
  #before: Segment | undefined
  /** A sync under way, and one that begins after it. */
  #syncing: Promise<void> = Promise.resolve()
  #nextSync: Promise<void> | undefined
  #lateSync: Disposable | undefined

  constructor(parts: LogWriterParts, from: number, last: Segment | undefined) {
    this.#parts = parts
    this.from = from
    this.#before = last
  }

  /** The log has to be written anew before anything that builds on it. */
  get hasLost(): boolean {
    return this.losses > this.repaired
  }

  /** Resolves to the place of each frame's bodies. Rejects with the system's errors. */
  async append(frames: readonly Encoded[]): Promise<readonly Place[]> {
    const segment = await this.#room()
    let { end } = segment
    const parts: Uint8Array[] = []
    const places: Place[] = []
    for (const frame of frames) {
      parts.push(...framed(frame, segment.id, end, segment.synced))
      places.push({ segment, offset: bodiesAt(frame, end) })
      end += frame.length
    }
    try {
      await segment.append(parts, end - segment.end)
    } catch (cause) {
      this.#giveUp()
      throw cause
    }
    this.work.bytes += end - segment.end
    segment.end = end
    this.#lateSync ??= after(this.#parts.syncWithinMs, () => this.#syncLate())
    return places
  }

  /** Resolves when all that was written before is on the disk. */
  sync(): Promise<void> {
    if (this.#unsynced.length === 0) return Promise.resolve()
    return (this.#nextSync ??= this.#syncing
      .catch(() => undefined)
      .then(() => {
        this.#nextSync = undefined
        return (this.#syncing = this.#sync())
      }))
  }

  /** Begins another segment; resolves to its number. Rejects with the system's errors. */
  async rotate(): Promise<number> {
    const { folder, prepare } = this.#parts
    await prepare()
    await this.sync().catch((cause: unknown) => {
      if (!this.hasLost) throw cause
    })
    const before = this.#current ?? this.#before
    const segment = folder.segment(folder.newest + 1)
    const from = Math.min(this.from, segment.id)
    const end = this.hasLost && !this.#current ? before?.synced : before?.end
    const of: SegmentRecord = { kind: 'segment', format, from, before: end ?? 0 }
    const head = encode(of)
    try {
      segment.create()
      await segment.append(framed(head, segment.id, 0, 0), head.length)
      segment.end = head.length
      await segment.sync()
      await folder.sync()
    } catch (cause) {
      folder.remove(segment)
      // Its head may be on the disk for all that: what the one before gets now would not count.
      this.#giveUp()
      throw cause
    }
    this.work.bytes += head.length
    this.work.syncs += 1
    this.from = from
    this.#current = segment
    this.#before = undefined
    return segment.id
  }

  async close(): Promise<void> {
    this.#lateSync?.[Symbol.dispose]()
    // What a former process wrote stays as it is.
    if (!this.#current) return
    await this.sync().catch(() => undefined)
    // What comes later than the last sync could be torn: now nothing is.
    await this.append([encode({ kind: 'bodies' })]).catch(() => undefined)
    this.#lateSync?.[Symbol.dispose]()
  }

  async #room(): Promise<Segment> {
    if (!this.#current || this.#current.end >= this.#parts.segmentBytes) await this.rotate()
    if (!this.#current) throw new Error('there is no segment to write to')
    return this.#current
  }

  get #unsynced(): readonly Segment[] {
    return [this.#before, this.#current].filter(
      (each): each is Segment => each !== undefined && each.synced < each.end && !each.isLost,
    )
  }

  #giveUp(): void {
    this.#before = this.#current ?? this.#before
    this.#current = undefined
  }

  async #sync(): Promise<void> {
    try {
      for (const segment of this.#unsynced) {
        await segment.sync()
        this.work.syncs += 1
      }
    } catch (cause) {
      this.losses += 1
      this.#giveUp()
      throw cause
    }
  }

  #syncLate(): void {
    this.#lateSync = undefined
    this.sync().catch((cause: unknown) => this.#parts.onSyncFailed(cause))
  }
}
