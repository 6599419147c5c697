import { after } from '../../../base/clock.ts'
import { StoreFailure } from '../store.ts'
import { failureOf, type ReportFault } from './faults.ts'
import { bodiesAt, type Body, type BodyMark, type Held } from '../state/held.ts'
import type { LogWriter } from './log-writer.ts'
import type { EvictRecord, LogRecord } from '../state/record.ts'
import type { State } from '../state/state.ts'

/** Bytes written at once, which later writes wait for. */
export const groupBytes = 1 << 20
/** Until a disk that has failed is tried again. */
const retryMs = 2_000

/** Bytes as they are to be stored, and the digest of `BodyMark`. */
export type NewBody = readonly [stored: Uint8Array, digest: number]

/** A record that is ready to be written, but for its bodies. */
export interface Composed {
  readonly record: LogRecord
  /** Those that are written with it. */
  readonly bodies?: readonly NewBody[]
  /** In place of them, those that earlier records have brought. */
  readonly placed?: readonly Body[]
}

export interface Written {
  readonly bodies: readonly Body[]
  /** The previous states of objects. */
  readonly displaced: readonly (Held | undefined)[]
}

export interface Write {
  /**
   * Called when it is about to be written; `undefined`: there is nothing to write. Throws a
   * `StoreFailure` for a write that would be wrong by now.
   */
  readonly compose: () => Composed | undefined
  /** Of bodies; absent: it is written where there is no room, too. */
  readonly bytes?: number
  /** The record depends on the state after all earlier writes. */
  readonly alone?: boolean
  /** It is answered when it is on the disk: a power cut must not undo it. */
  readonly durable?: boolean
  /** What is unknown if this fails; absent: it has changed the state in its turn already. */
  readonly missed?: () => EvictRecord | undefined
}

interface Waiting {
  readonly write: Write
  readonly done: PromiseWithResolvers<Written | undefined>
}

export interface WritePathParts {
  readonly state: State
  readonly log: LogWriter
  readonly report: ReportFault
  /** Called when the disk has failed, or a write found no room, and one is taken again. */
  readonly onRecovered: () => void
  readonly keeper: () => Keeper
}

/** Keeps the log in order. */
export interface Keeper {
  /**
   * Whether so many bytes of bodies may be written: returns how many bytes in all may be until it
   * is called again. A promise resolves when it is to be called again, as room is being made.
   */
  room(bytes: number): number | StoreFailure | Promise<void>
  /** Evicts what is too much, and writes the log anew. */
  pass(): Promise<void>
}

/**
 * Takes writes to the log in order: those that come together in one, and while it is being written
 * later ones wait. A record changes the state when it is written. What missed a write is unknown
 * from then on, and what was to be removed is gone, whether or not the disk takes that.
 */
export class WritePath {
  /**
   * The disk has failed: it lacks a part of what was written, or has what was refused. Nothing that
   * builds on it may be written until the log is written anew.
   */
  isFailing = false
  /** Collections and objects that missed a write, and may be on the disk yet. */
  readonly missed = new Set<string>()
  readonly #parts: WritePathParts
  readonly #waiting: Waiting[] = []
  /** When the log has written so many bytes, the room is checked again. */
  #roomUpTo = 0
  /** There was no room for the last write: the next one shows whether there is. */
  #isFull = false
  #running: Promise<void> | undefined
  /** The write under way, and those that come after it. */
  #log: Promise<unknown> = Promise.resolve()
  /** The sync of the last durable write. */
  #synced = Promise.resolve()
  #retry: Disposable | undefined
  #refusal: StoreFailure | undefined
  #isClosed = false

  constructor(parts: WritePathParts) {
    this.#parts = parts
  }

  /** Whether it takes writes, and the state is that of all before. */
  get isIdle(): boolean {
    return !this.#running && !this.#refusal
  }

  /** Resolves when the state has changed, or there was nothing to write. */
  push(write: Write): Promise<Written | undefined> {
    if (this.#refusal) return Promise.reject(this.#refusal)
    const done = Promise.withResolvers<Written | undefined>()
    this.#waiting.push({ write, done })
    this.#running ??= this.#writeAll()
    return done.promise
  }

  /** Calls `act` between two writes; later ones wait for it. Rejects with a `StoreFailure`. */
  async exclusively<T>(act: () => Promise<T>): Promise<T> {
    if (this.#refusal) throw this.#refusal
    return this.#after(act)
  }

  async #after<T>(act: () => Promise<T>): Promise<T> {
    const done = this.#log.then(act)
    this.#log = done.catch(() => undefined)
    return done.catch((cause: unknown) => {
      throw this.#reported(cause)
    })
  }

  /** Writes the records, and changes the state by them. Called while nothing else is written. */
  async append(all: readonly Composed[]): Promise<readonly Written[]> {
    const { state, log } = this.#parts
    const marked = all.map(({ record, placed, bodies = [] }) => {
      const marks = bodies.map(([{ byteLength }, digest]): BodyMark => {
        state.lastSerial += 1
        return [byteLength, digest, state.lastSerial]
      })
      const of = placed?.map(({ mark }) => mark) ?? marks
      return { record: { ...record, bodies: of }, bodies: bodies.map(([each]) => each), placed }
    })
    const places = await log.append(marked)
    return marked.map(({ record, placed }, at): Written => {
      const place = places[at]
      const bodies = placed ?? (place ? bodiesAt(...place, record.bodies) : [])
      return { bodies, displaced: isOfNow.has(record.kind) ? [] : state.apply(record, bodies) }
    })
  }

  /** Resolves when all that was written before is on the disk. */
  async sync(): Promise<void> {
    await this.#parts.log.sync().catch((cause: unknown) => {
      this.failed(cause)
      throw failureOf(refused, cause)
    })
    if (this.isFailing) throw new StoreFailure(refused)
  }

  /** Called when the disk has refused something. */
  failed(cause: unknown): void {
    if (!this.isFailing) this.#parts.report('write', failureOf(refused, cause))
    this.isFailing = true
    this.#retry ??= after(retryMs, () => {
      this.#retry = undefined
      void this.#parts.keeper().pass()
    })
  }

  /** The log has been written anew. */
  recovered(): void {
    this.missed.clear()
    this.#synced = Promise.resolve()
    if (!this.isFailing) return
    this.isFailing = this.#isFull = false
    this.#retry?.[Symbol.dispose]()
    this.#retry = undefined
    this.#parts.onRecovered()
  }

  /** Removes parts of the state at once, and on the disk before later writes. */
  evict(records: readonly EvictRecord[]): void {
    for (const each of records) this.#parts.state.apply(each, [])
    if (this.#isClosed) return
    this.#after(async () => {
      await this.append(records.map((record) => ({ record })))
      this.missed.clear()
    }).catch(() => undefined)
  }

  /** Refuses further writes; resolves when all accepted ones have been answered. */
  async close(): Promise<void> {
    this.#refusal ??= new StoreFailure('the store is closed')
    this.#retry?.[Symbol.dispose]()
    await this.#running
    for (let log; log !== this.#log; await log) log = this.#log
    this.#isClosed = true
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      for (let log; log !== this.#log; await log) log = this.#log
      const group = this.#next()
      const bytes = bytesOf(group)
      const { keeper, log } = this.#parts
      const left = this.#roomUpTo - log.work.bytes
      const room = this.isFailing || bytes >= left ? keeper().room(bytes) : left
      if (room instanceof Promise) {
        await room
        continue
      }
      this.#waiting.splice(0, group.length)
      this.#roomUpTo = room instanceof StoreFailure ? 0 : log.work.bytes + room
      await (this.#log = this.#write(group, room))
    }
    this.#running = undefined
  }

  /** The writes that go together. */
  #next(): readonly Waiting[] {
    let [count, bytes] = [0, 0]
    for (const { write } of this.#waiting) {
      bytes += write.bytes ?? 0
      if (count > 0 && (write.alone || bytes > groupBytes)) break
      count += 1
      if (write.alone) break
    }
    return this.#waiting.slice(0, count)
  }

  async #write(group: readonly Waiting[], room: number | StoreFailure): Promise<void> {
    const ready: Waiting[] = []
    const records: Composed[] = []
    for (const waiting of group)
      try {
        const composed = waiting.write.compose()
        if (composed && ready.push(waiting)) records.push(composed)
        // What it repeats may not be on the disk yet.
        if (!composed) this.#answer(waiting, undefined)
      } catch (cause) {
        waiting.done.reject(cause)
      }
    if (ready.length === 0) return
    try {
      if (room instanceof StoreFailure) throw room
      if (this.isFailing) throw new StoreFailure(refused)
      const written = await this.append(records)
      if (this.#isFull) this.#parts.onRecovered()
      this.#isFull = false
      if (ready.some(({ write }) => write.durable)) this.#synced = this.#parts.log.sync()
      for (const [at, waiting] of ready.entries()) this.#answer(waiting, written[at])
    } catch (cause) {
      // What it writes has to wait for this, which `#log` is not yet where no write was tried.
      await Promise.resolve()
      this.#refuse(ready, cause)
    }
  }

  #answer(waiting: Waiting, written: Written | undefined): void {
    if (!waiting.write.durable) return waiting.done.resolve(written)
    // Later writes do not wait for it.
    this.#synced.then(
      () => {
        // A sync that failed meanwhile left nothing to this one.
        if (this.isFailing) this.#refuse([waiting], new StoreFailure(refused))
        else waiting.done.resolve(written)
      },
      (cause: unknown) => this.#refuse([waiting], cause),
    )
  }

  #refuse(group: readonly Waiting[], cause: unknown): void {
    const failure = this.#reported(cause)
    const missed = group.flatMap(({ write }) => write.missed?.() ?? [])
    for (const { parts } of missed) for (const part of parts) this.missed.add(JSON.stringify(part))
    if (missed.length > 0) this.evict(missed)
    for (const { done } of group) done.reject(failure)
  }

  #reported(cause: unknown): StoreFailure {
    const failure = failureOf(refused, cause)
    if (cause instanceof StoreFailure) {
      this.#isFull ||= !this.isFailing
      this.#parts.report('write', failure)
    } else this.failed(failure)
    return failure
  }
}

/** They change nothing once written: a snapshot, and removals, which the state has had already. */
const isOfNow = new Set<LogRecord['kind']>(['scope', 'evict', 'forget', 'withdraw'])

export const refused = 'the disk refuses writes'

const bytesOf = (group: readonly Waiting[]): number =>
  group.reduce((sum, { write }) => sum + (write.bytes ?? 0), 0)
