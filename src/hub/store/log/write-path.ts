import { after, turn } from '../../../base/clock.ts'
import { StoreFailure } from '../store.ts'
import type { Part } from './address.ts'
import { Body, type BodyMark } from './body.ts'
import { failureOf, type ReportFault } from './faults.ts'
import type { Held } from './held.ts'
import type { LogWriter, Place } from './log-writer.ts'
import type { EvictRecord, LogRecord } from './record.ts'
import type { State } from './state.ts'

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

export interface Write<T> {
  /**
   * Called when it is about to be written; `undefined`: there is nothing to write. Throws a
   * `StoreFailure` for a write that would be wrong by now.
   */
  readonly compose: () => Composed | undefined
  /** Of bodies; absent: it needs no room. */
  readonly bytes?: number
  /** The record depends on the state after all earlier writes. */
  readonly alone?: boolean
  /** Before all waiting writes, also where there is no room: it makes room. */
  readonly first?: boolean
  /** Called before it is written; a failure is one of the write. */
  readonly before?: () => Promise<unknown>
  /** It is answered when it is on the disk: a power cut must not undo it. */
  readonly durable?: boolean
  /** The collection that is unknown if this fails. */
  readonly of?: Part
  /** Called when the state has changed. */
  readonly applied?: (written: Written | undefined) => T
}

interface Waiting {
  readonly write: Write<unknown>
  readonly done: PromiseWithResolvers<unknown>
}

interface Ready {
  readonly waiting: Waiting
  readonly record: LogRecord
  readonly placed: readonly Body[] | undefined
  readonly marks: readonly BodyMark[]
  readonly bodies: readonly Uint8Array[]
}

export interface WritePathParts {
  readonly state: State
  readonly log: LogWriter
  readonly report: ReportFault
  /** Called with the bytes of objects and documents. */
  readonly onCommitted: (bytes: number) => void
  readonly onRecovered: () => void
  readonly keeper: () => Keeper
}

/** Keeps the log in order. */
export interface Keeper {
  /** Called after writes. */
  written(): void
  /** Whether so many bytes may be written; a promise: when it may be so, as room is being made. */
  room(bytes: number): true | StoreFailure | Promise<void>
  /** Evicts what is too much, and writes the log anew. */
  pass(): Promise<void>
}

/**
 * Takes writes to the log in order: those of one turn together, and while they are being written
 * later ones wait. A record changes the state when it is written. A collection that missed a write
 * is unknown from then on.
 */
export class WritePath {
  /**
   * The disk has failed: it lacks a part of what was written, or has what was refused. Nothing that
   * builds on it may be written until the log is written anew.
   */
  isFailing = false
  /** Collections that missed a write, and may be on the disk yet. */
  readonly missed = new Set<string>()
  readonly #parts: WritePathParts
  readonly #waiting: Waiting[] = []
  readonly #first: Waiting[] = []
  #running: Promise<void> | undefined
  #making: Promise<void> | undefined
  #retry: Disposable | undefined
  #refusal: StoreFailure | undefined

  constructor(parts: WritePathParts) {
    this.#parts = parts
  }

  /** Resolves when it is written, rejects with a `StoreFailure`. */
  async push<T = void>(write: Write<T>): Promise<T> {
    if (this.#refusal) throw this.#refusal
    const done = Promise.withResolvers<unknown>()
    const queue = write.first ? this.#first : this.#waiting
    queue.push({ write, done })
    this.#run()
    return (await done.promise) as T
  }

  /** Calls `act` between two writes; later ones wait for it. Rejects with a `StoreFailure`. */
  exclusively(act: () => Promise<unknown>): Promise<void> {
    return this.push({ first: true, before: act, compose: () => undefined })
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
    if (!this.isFailing) return
    this.isFailing = false
    this.#retry?.[Symbol.dispose]()
    this.#retry = undefined
    this.#parts.onRecovered()
  }

  /** Removes parts of the state at once, and on the disk before later writes. */
  remove(parts: readonly Part[]): void {
    const record: EvictRecord = { kind: 'evict', parts }
    this.#parts.state.apply(record, [])
    const applied = (): void => this.missed.clear()
    this.push({ compose: () => ({ record }), first: true, applied }).catch(() => undefined)
  }

  /** Refuses further writes; resolves when all accepted ones have been answered. */
  async close(): Promise<void> {
    this.#refusal ??= new StoreFailure('the store is closed')
    this.#retry?.[Symbol.dispose]()
    while (this.#waiting.length + this.#first.length > 0 || this.#running)
      await (this.#running ?? this.#making)
  }

  #run(): void {
    this.#running ??= this.#writeAll()
  }

  async #writeAll(): Promise<void> {
    // What comes in this turn goes together.
    await turn()
    for (let group = this.#next(); group.length > 0; group = this.#next()) {
      const isFirst = group[0]?.write.first === true
      const bytes = bytesOf(group)
      const room = isFirst || this.#parts.keeper().room(bytes)
      if (room instanceof Promise) {
        this.#making = room.then(() => this.#run())
        break
      }
      ;(isFirst ? this.#first : this.#waiting).splice(0, group.length)
      if (room instanceof StoreFailure) this.#refuse(group, room)
      else await this.#write(group)
    }
    this.#running = undefined
  }

  /** The writes that go together. */
  #next(): readonly Waiting[] {
    if (this.#first.length > 0) return this.#first.slice(0, 1)
    let [count, bytes] = [0, 0]
    for (const { write } of this.#waiting) {
      bytes += write.bytes ?? 0
      if (count > 0 && (write.alone || bytes > groupBytes)) break
      count += 1
      if (write.alone) break
    }
    return this.#waiting.slice(0, count)
  }

  async #write(group: readonly Waiting[]): Promise<void> {
    try {
      await group[0]?.write.before?.()
      const ready = group.flatMap((waiting) => composed(waiting, this.#parts.state) ?? [])
      if (ready.length > 0) await this.#append(ready)
    } catch (cause) {
      this.#refuse(group, cause)
    }
  }

  async #append(ready: readonly Ready[]): Promise<void> {
    const { state, log, onCommitted, keeper } = this.#parts
    const places = await log.append(ready)
    const durable: (() => void)[] = []
    for (const [at, { waiting, record, placed, marks }] of ready.entries()) {
      const place = places[at]
      if (!place) throw new RangeError('a frame has no place')
      const bodies = placed ?? bodiesOf(marks, place)
      // A snapshot is of this state.
      const displaced = record.kind === 'scope' ? [] : state.apply(record, bodies)
      const result = waiting.write.applied?.({ bodies, displaced })
      if (waiting.write.durable) durable.push(() => waiting.done.resolve(result))
      else waiting.done.resolve(result)
    }
    const bytes = bytesOf(ready.map(({ waiting }) => waiting))
    if (bytes > 0 || ready.some(({ record }) => record.kind === 'list')) onCommitted(bytes)
    keeper().written()
    if (durable.length === 0) return
    // Later writes do not wait for it.
    const group = ready.flatMap(({ waiting }) => (waiting.write.durable ? [waiting] : []))
    log.sync().then(
      () => {
        // A sync that failed meanwhile left nothing to this one.
        if (this.isFailing) this.#refuse(group, new StoreFailure(refused))
        else durable.forEach((resolve) => resolve())
      },
      (cause: unknown) => this.#refuse(group, cause),
    )
  }

  #refuse(group: readonly Waiting[], cause: unknown): void {
    const failure = failureOf(refused, cause)
    // Of a store that is full the next write shows whether there is room.
    if (cause instanceof StoreFailure) this.#parts.report('write', failure)
    else this.failed(failure)
    const unknown = group.flatMap(({ write }) => (write.of ? [write.of] : []))
    for (const each of unknown) this.missed.add(JSON.stringify(each))
    if (unknown.length > 0) this.remove(unknown)
    for (const { done } of group) done.reject(failure)
  }
}

export const refused = 'the disk refuses writes'

const bytesOf = (group: readonly Waiting[]): number =>
  group.reduce((sum, { write }) => sum + (write.bytes ?? 0), 0)

/** `undefined`: there is nothing to write, and it is answered. */
function composed(waiting: Waiting, state: State): Ready | undefined {
  try {
    const of = waiting.write.compose()
    if (of) {
      const { placed, bodies = [] } = of
      const marks = bodies.map(([{ byteLength }, digest]): BodyMark => [
        byteLength,
        digest,
        state.nextSerial++,
      ])
      const record = { ...of.record, bodies: placed?.map(({ mark }) => mark) ?? marks }
      return { waiting, record, placed, marks, bodies: bodies.map(([each]) => each) }
    }
    waiting.done.resolve(waiting.write.applied?.(undefined))
  } catch (cause) {
    waiting.done.reject(cause)
  }
  return undefined
}

function bodiesOf(marks: readonly BodyMark[], { segment, offset }: Place): Body[] {
  let at = offset
  return marks.map((mark) => {
    const body = new Body(segment, at, mark)
    at += mark[0]
    return body
  })
}
