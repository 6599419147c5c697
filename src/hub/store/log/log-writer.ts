import { after } from '../../../base/clock.ts'
import { framed, type Unframed } from './frame.ts'
import { format, type LogFolder, type Segment, type SegmentRecord } from './segments.ts'

export interface LogWriterParts {
  readonly folder: LogFolder
  readonly segmentBytes: number
  /** How long a write may stay unsynced. */
  readonly syncWithinMs: number
  /** Called before a segment is begun; rejects where that may not be. */
  readonly prepare: () => Promise<void>
  /** A sync failed that no write waits for. */
  readonly onSyncFailed: (cause: unknown) => void
}

export type Place = readonly [segment: number, offset: number]

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
  readonly #parts: LogWriterParts
  /** The first segment of which the records count. */
  #from: number
  /** Of the log as it was written anew last, or is being: what was lost before does not matter. */
  #anew = 0
  /** The newest segment of which a sync failed: the next one would say that all is well. */
  #lost = -1
  #current: Segment | undefined
  /** A sync under way, and one that begins after it. */
  #syncing: Promise<void> = Promise.resolve()
  #nextSync: Promise<void> | undefined
  #lateSync: Disposable | undefined

  constructor(parts: LogWriterParts, from: number) {
    this.#parts = parts
    this.#from = from
  }

  /** Resolves to where the bodies of each record begin. Rejects with the system's errors. */
  async append(records: readonly Unframed[]): Promise<readonly Place[]> {
    if (this.#hasLost) throw new Error(lost)
    const current = this.#current
    const isFull = !current || current.end >= this.#parts.segmentBytes
    const segment = isFull ? await this.rotate() : current
    let { end } = segment
    const parts: Uint8Array[] = []
    const places: Place[] = []
    for (const each of records) {
      const frame = framed(each, segment, end)
      parts.push(...frame.parts)
      places.push([segment.id, frame.bodiesAt])
      end = frame.end
    }
    try {
      await segment.append(parts, end - segment.end)
    } catch (cause) {
      this.#current = undefined
      throw cause
    }
    this.work.bytes += end - segment.end
    segment.end = end
    this.#lateSync ??= after(this.#parts.syncWithinMs, () => this.#syncLate())
    return places
  }

  /** Resolves when all that was written before is on the disk. Rejects with the system's errors. */
  sync(): Promise<void> {
    return (this.#nextSync ??= this.#syncing
      .catch(() => undefined)
      .then(() => {
        this.#nextSync = undefined
        return (this.#syncing = this.#sync())
      }))
  }

  /** Resolves to the number of the first segment of the log that is written anew. */
  async beginAnew(): Promise<number> {
    await this.#parts.prepare()
    // Nothing may build on what is lost before it is written anew.
    await this.sync().catch((cause: unknown) => this.#parts.onSyncFailed(cause))
    const { id } = await this.#beginSegment()
    return (this.#anew = id)
  }

  /** From now on what was written before is not read any more, but for bodies. */
  async endAnew(): Promise<void> {
    await this.sync()
    this.#from = this.#anew
    await this.#beginSegment()
  }

  /** Begins another segment. Rejects with the system's errors. */
  async rotate(): Promise<Segment> {
    await this.#parts.prepare()
    await this.sync()
    return this.#beginSegment()
  }

  async #beginSegment(): Promise<Segment> {
    const { folder } = this.#parts
    const last = folder.segments.get(folder.newest)
    const segment = folder.segment(folder.newest + 1)
    const from = Math.min(this.#from, segment.id)
    const record: SegmentRecord = { kind: 'segment', format, from, before: last?.synced ?? 0 }
    const head = framed({ record }, { id: segment.id, synced: 0 }, 0)
    // Its head may be on the disk after a failure: what the one before gets then would not count.
    this.#current = undefined
    try {
      segment.create()
      await segment.append(head.parts, head.end)
      segment.end = head.end
      await segment.sync()
      await folder.sync()
    } catch (cause) {
      await folder.remove(segment.id)
      throw cause
    }
    this.work.bytes += head.end
    this.work.syncs += 1
    this.#from = from
    return (this.#current = segment)
  }

  async close(): Promise<void> {
    this.#lateSync?.[Symbol.dispose]()
    // What a former process wrote stays as it is.
    if (!this.#current) return
    await this.sync().catch(() => undefined)
    // What comes later than the last sync could be torn: now nothing is.
    await this.append([{ record: { kind: 'bodies' } }]).catch(() => undefined)
    this.#lateSync?.[Symbol.dispose]()
  }

  /** A sync failed, of what is not written anew. */
  get #hasLost(): boolean {
    return this.#lost >= this.#anew
  }

  async #sync(): Promise<void> {
    for (const segment of this.#parts.folder.segments.values()) {
      if (segment.synced >= segment.end || segment.id <= this.#lost) continue
      await segment.sync().catch((cause: unknown) => {
        this.#lost = segment.id
        throw cause
      })
      this.work.syncs += 1
    }
    if (this.#hasLost) throw new Error(lost)
  }

  #syncLate(): void {
    this.#lateSync = undefined
    this.sync().catch((cause: unknown) => this.#parts.onSyncFailed(cause))
  }
}

const lost = 'an earlier sync has failed'
