import { after } from '../../../base/clock.ts'
import { StoreFailure } from '../store.ts'
import type { Part } from './address.ts'
import { Body, type BodyMark } from './body.ts'
import { failureOf, type ReportFault } from './faults.ts'
import { encode, type Encoded } from './frame.ts'
import type { Held } from './held.ts'
import type { LogWriter, Place } from './log-writer.ts'
import type { EvictRecord, LogRecord } from './record.ts'
import type { State } from './state.ts'

/** Bytes that may wait to be written before further list batches have to wait, too. */
export const highWater = 4 << 20
/** Bytes written at once, which later writes wait for. */
export const groupBytes = 1 << 20
/** Between two tries of a disk that refuses writes. */
const retryMs = 2_000
/** The size of most answers: a disk that takes only a few bytes is as good as full. */
const trialBytes = 64 << 10

/** A record that is ready to be written. */
export interface Composed {
  readonly record: LogRecord
  /** Those that are written with it, and what the record says of them. */
  readonly bodies?: readonly Uint8Array[]
  readonly marks?: readonly BodyMark[]
  /** Those that earlier records have brought. */
  readonly placed?: readonly Body[]
}

export interface Written extends Place {
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
  readonly bytes: number
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
  readonly applied: (written: Written | undefined) => T
}

interface Waiting {
  readonly write: Write<unknown>
  readonly done: PromiseWithResolvers<unknown>
}

interface Ready {
  readonly waiting: Waiting
  readonly of: Composed
  readonly frame: Encoded
}

export interface WritePathParts {
  readonly state: State
  readonly log: LogWriter
  readonly maxBytes: number
  readonly bytesOnDisk: () => number
  readonly report: ReportFault
  /** Called with the bytes of objects and documents. */
  readonly onCommitted: (bytes: number) => void
  readonly onRecovered: () => void
  readonly onWritten: () => void
  /** Resolves to whether there is more room than before. */
  readonly makeRoom: () => Promise<boolean>
}

/**
 * Takes writes to the log in order: those of one turn together, and while they are being written
 * later ones wait. A record changes the state when it is written. A disk that refuses writes is
 * tried until it takes one; a collection that missed a write is unknown from then on, and removed
 * on the disk before anything else is written.
 */
export class WritePath {
  /** Collections that missed a write, and are not removed on the disk yet. */
  readonly missed = new Map<string, Part>()
  /** How many times a collection has missed a write. */
  misses = 0
  readonly #parts: WritePathParts
  readonly #waiting: Waiting[] = []
  readonly #first: Waiting[] = []
  #waitingBytes = 0
  #running: Promise<void> | undefined
  #roomier: PromiseWithResolvers<void> | undefined
  #making: 'no' | 'under way' | 'in vain' = 'no'
  #retry: Disposable | undefined
  #isFailing = false
  #refusal: StoreFailure | undefined
  #serial: number

  constructor(parts: WritePathParts) {
    this.#parts = parts
    this.#serial = parts.state.nextSerial
  }

  /** The mark of a body that is about to be written. */
  mark(length: number, digest: number): BodyMark {
    return [length, digest, this.#serial++]
  }

  /** Resolves when it is written, rejects with a `StoreFailure`. */
  async push<T>(write: Write<T>): Promise<T> {
    if (this.#refusal) throw this.#refusal
    const done = Promise.withResolvers<unknown>()
    const queue = write.first ? this.#first : this.#waiting
    queue.push({ write, done })
    this.#waitingBytes += write.bytes
    this.#run()
    return (await done.promise) as T
  }

  /** Calls `act` between two writes; later ones wait for it. Rejects with a `StoreFailure`. */
  exclusively(act: () => Promise<unknown>): Promise<void> {
    const nothing = (): undefined => undefined
    return this.push({ first: true, bytes: 0, before: act, compose: nothing, applied: nothing })
  }

  /** As of the log. */
  get losses(): number {
    return this.#parts.log.losses
  }

  /** Resolves when more may wait. */
  async room(): Promise<void> {
    if (this.#waitingBytes < highWater) return
    this.#roomier ??= Promise.withResolvers()
    await this.#roomier.promise
  }

  /** Resolves when all that was written before is on the disk. */
  async sync(): Promise<void> {
    await this.#parts.log.sync().catch((cause: unknown) => {
      this.failed(cause)
      throw failureOf(refused, cause)
    })
    // A sync that failed meanwhile leaves nothing to a later one.
    if (this.#parts.log.hasLost) throw new StoreFailure(refused)
  }

  /** The disk refuses writes. */
  failed(cause: unknown): void {
    this.#parts.report('write', failureOf(refused, cause))
    this.#isFailing = true
    this.#retry ??= after(retryMs, () => this.#try())
  }

  /** Refuses further writes; resolves when all accepted ones have been answered. */
  async close(): Promise<void> {
    this.#refusal ??= new StoreFailure('the store is closed')
    this.#retry?.[Symbol.dispose]()
    while (this.#waiting.length + this.#first.length > 0 || this.#running) {
      if (this.#making === 'under way') await this.#parts.makeRoom()
      await this.#running
    }
  }

  #run(): void {
    this.#running ??= this.#writeAll()
  }

  async #writeAll(): Promise<void> {
    // What comes in this turn goes together.
    await new Promise((resolve) => void setImmediate(resolve))
    for (let group = this.#take(); group; group = this.#take()) await this.#write(group)
    this.#running = undefined
  }

  /** The writes that go together; `undefined`: none, or they wait for a compaction. */
  #take(): Waiting[] | undefined {
    const first = this.#first.shift()
    if (first) return [first]
    let [count, bytes] = [0, 0]
    for (const { write } of this.#waiting) {
      if (count > 0 && (write.alone || bytes + write.bytes > groupBytes)) break
      count += 1
      bytes += write.bytes
      if (write.alone) break
    }
    if (count === 0) return undefined
    if (!this.#mayGoOn(bytes)) {
      if (this.#making === 'no') this.#makeRoom()
      if (this.#making === 'under way') return undefined
    }
    return this.#waiting.splice(0, count)
  }

  #mayGoOn(bytes: number): boolean {
    const { log, bytesOnDisk, maxBytes } = this.#parts
    return !log.hasLost && (bytes === 0 || bytesOnDisk() + bytes <= maxBytes)
  }

  #makeRoom(): void {
    this.#making = 'under way'
    const made = (isMade: boolean): void => {
      this.#making = isMade ? 'no' : 'in vain'
      this.#run()
    }
    this.#parts.makeRoom().then(made, () => made(false))
  }

  async #write(group: readonly Waiting[]): Promise<void> {
    const bytes = group.reduce((sum, { write }) => sum + write.bytes, 0)
    this.#waitingBytes -= bytes
    try {
      await group[0]?.write.before?.()
    } catch (cause) {
      return this.#refuse(group, cause)
    }
    const isTried = this.#making === 'in vain' && !group[0]?.write.first
    // A later write tries again.
    if (isTried) this.#making = 'no'
    if (isTried && !this.#mayGoOn(bytes)) {
      const why = this.#parts.log.hasLost ? refused : full(this.#parts.maxBytes)
      this.#refuse(group, new StoreFailure(why))
    } else {
      const ready = group.flatMap((waiting) => composed(waiting) ?? [])
      if (ready.length > 0)
        await this.#append(ready, bytes).catch((cause: unknown) => this.#refuse(group, cause))
    }
    if (this.#waitingBytes >= highWater) return
    this.#roomier?.resolve()
    this.#roomier = undefined
  }

  async #append(ready: readonly Ready[], bytes: number): Promise<void> {
    const { state, log, onCommitted, onWritten } = this.#parts
    const missed = this.missed.size > 0 ? [encode(without([...this.missed.values()]))] : []
    const places = (await log.append([...missed, ...ready.map(({ frame }) => frame)])).slice(
      missed.length,
    )
    this.missed.clear()
    if (this.#isFailing) this.#recovered()
    const durable: (() => void)[] = []
    for (const [at, { waiting, of }] of ready.entries()) {
      const place = places[at]
      if (!place) throw new RangeError('a frame has no place')
      const bodies = [...(of.placed ?? []), ...bodiesOf(of.marks ?? [], place)]
      // A snapshot is of this state.
      const displaced = of.record.kind === 'scope' ? [] : state.apply(of.record, bodies)
      const result = waiting.write.applied({ ...place, bodies, displaced })
      if (waiting.write.durable) durable.push(() => waiting.done.resolve(result))
      else waiting.done.resolve(result)
    }
    if (bytes > 0 || ready.some(({ of }) => of.record.kind === 'list')) onCommitted(bytes)
    onWritten()
    if (durable.length + missed.length === 0) return
    // Later writes do not wait for it.
    const group = ready.flatMap(({ waiting }) => (waiting.write.durable ? [waiting] : []))
    log.sync().then(
      () => {
        // The sync before this one has failed, and left it nothing.
        if (group.length > 0 && log.hasLost) this.#refuse(group, new StoreFailure(refused))
        else durable.forEach((resolve) => resolve())
      },
      (cause: unknown) => this.#refuse(group, cause),
    )
  }

  #refuse(group: readonly Waiting[], cause: unknown): void {
    const failure = failureOf(refused, cause)
    for (const { write, done } of group) {
      if (write.of) {
        this.misses += 1
        this.missed.set(JSON.stringify(write.of), write.of)
        this.#parts.state.apply(without([write.of]), [])
      }
      done.reject(failure)
    }
    // Of a store that is full the next write shows whether there is room.
    if (cause instanceof StoreFailure) this.#parts.report('write', failure)
    else this.failed(failure)
  }

  #try(): void {
    this.#retry = undefined
    const compose = (): Composed => ({
      record: { kind: 'bodies' },
      bodies: [Buffer.alloc(trialBytes)],
    })
    this.push({ compose, bytes: 0, first: true, applied: () => undefined }).catch(() => undefined)
  }

  #recovered(): void {
    this.#isFailing = false
    this.#retry?.[Symbol.dispose]()
    this.#retry = undefined
    this.#parts.onRecovered()
  }
}

const without = (parts: readonly Part[]): EvictRecord => ({ kind: 'evict', parts })

const refused = 'the disk refuses writes'
const full = (maxBytes: number): string =>
  `the cache has reached its maximum size of ${maxBytes} bytes`

/** `undefined`: there is nothing to write, and it is answered. */
function composed(waiting: Waiting): Ready | undefined {
  try {
    const of = waiting.write.compose()
    if (of) return { waiting, of, frame: encode(of.record, of.bodies) }
    waiting.done.resolve(waiting.write.applied(undefined))
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
