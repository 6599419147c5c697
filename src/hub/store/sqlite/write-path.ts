import type { NamedObject } from '../named-object.ts'
import type { StoreFailure } from '../store.ts'
import type { CollectionState } from './collection-state.ts'
import type { Collections } from './collections.ts'
import type { Connection } from './connection.ts'
import type { Operation } from './messages.ts'
import type { OpenWriter, StoreDirectory } from './store-directory.ts'
import { Recovery } from './recovery.ts'
import { Evictor, type OnEvicted } from './evictor.ts'
import type { Snapshots } from './snapshots.ts'
import { reportMaintenance, type ReportFault } from './faults.ts'
import { WriteQueue, type OnCommitted, type Write } from './write-queue.ts'
import { WriterThread } from './writer-thread.ts'

export interface WritePathParts {
  readonly storeDirectory: Pick<StoreDirectory, 'openWriter' | typeof Symbol.dispose>
  /** The first writer, or why there is none yet. */
  readonly first: OpenWriter | StoreFailure
  readonly connection: Connection
  readonly collections: Collections
  readonly snapshots: Snapshots
  readonly report: ReportFault
  readonly onCommitted: OnCommitted
  readonly onRecovered: () => void
  readonly onEvicted: OnEvicted
  /** The objects that the node's pods refer to; `undefined`: not known. */
  readonly referencedObjects: () => readonly NamedObject[] | undefined
}

/**
 * Takes writes to the disk through all failures. A writer that has ended is started again, and its
 * unanswered writes are refused. A disk that refuses writes is tried until it takes one. A
 * collection that missed a write must not be served after a restart either: it is marked as soon as
 * the disk takes a write.
 */
export class WritePath implements AsyncDisposable {
  readonly queue: WriteQueue
  readonly #parts: WritePathParts
  readonly #recovery: Recovery
  readonly #writer: WriterThread<OpenWriter>
  /** Collections that missed a write, where marking them failed, too. */
  readonly #notInvalidated = new Set<CollectionState>()

  constructor(parts: WritePathParts) {
    const { storeDirectory, first, collections, snapshots } = parts
    this.#parts = parts
    const evictor = new Evictor({
      push: (write) => this.queue.push(write),
      gone: (collection) => collections.known(collection)?.reload(),
      giveUpReader: () => snapshots.giveUpFirst(),
      onEvicted: parts.onEvicted,
      onFailed: (cause) => reportMaintenance(parts.report, cause),
      referencedObjects: parts.referencedObjects,
    })
    this.queue = new WriteQueue(snapshots, parts.onCommitted, {
      onNearFull: () => evictor.nearFull(),
      onOverQuota: (identity) => evictor.overQuota(identity),
    })
    this.#recovery = new Recovery((trial) => this.#try(trial), parts.onRecovered)
    this.#writer = new WriterThread<OpenWriter>(first, () => storeDirectory.openWriter(), {
      onEnded: (failure) => this.#ended(failure),
      onStarted: (begun) => this.#started(begun),
    })
  }

  /**
   * Makes a write that does not belong to one collection. Resolves when it is committed, rejects
   * with a `StoreFailure`.
   */
  async write(
    operation: Operation,
    { bytes = 0, settled, ...rest }: Partial<Omit<Write, 'operation'>> = {},
  ): Promise<void> {
    await this.queue.push({
      ...rest,
      operation: () => operation,
      bytes,
      settled: (failure) => {
        this.settled(failure)
        settled?.(failure)
      },
    })
  }

  /**
   * Must be called with the outcome of each write; `state`: its collection, if that needs the write
   * to be complete.
   */
  settled(failure: StoreFailure | undefined, state?: CollectionState): void {
    if (!failure) {
      this.#invalidateAgain()
      return
    }
    this.#failed('write', failure)
    if (state) this.#invalidate(state)
  }

  /** Refuses further writes; resolves when all accepted ones have been answered. */
  async drain(): Promise<void> {
    this.#recovery[Symbol.dispose]()
    this.#invalidateAgain()
    await this.queue.close()
  }

  /** Resolves when the writer has ended; `drain` must be called before. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#writer[Symbol.asyncDispose]()
  }

  #started({ worker, reads }: OpenWriter): void {
    this.#parts.connection.writerStarted(reads)
    this.queue.attach(worker)
    this.#invalidateAgain()
    this.#recovery.tryNow()
  }

  /** The writes in progress are lost, and staged objects will be deleted. */
  #ended(failure: StoreFailure): void {
    this.#failed('writer', failure)
    this.queue.refuse(failure)
    this.#parts.collections.interrupt()
    this.#parts.connection.writerEnded()
  }

  #try(trial: Write): Promise<unknown> {
    return this.queue.push({
      ...trial,
      settled: (failure) => {
        if (!failure) this.#invalidateAgain()
      },
    })
  }

  #failed(kind: 'write' | 'writer', failure: StoreFailure): void {
    this.#parts.report(kind, failure)
    this.#recovery.failed()
  }

  /** Marks a collection that missed a write, unless a list of it is sent before the mark. */
  #invalidate(state: CollectionState): void {
    const operation: Operation = { kind: 'invalidate', collection: state.address }
    this.queue
      .push({ operation: () => (state.missedWrite ? operation : undefined), bytes: 0 })
      .catch(() => this.#notInvalidated.add(state))
  }

  /** The disk takes writes again. A collection that was listed since needs no mark. */
  #invalidateAgain(): void {
    for (const state of this.#notInvalidated) if (state.missedWrite) this.#invalidate(state)
    this.#notInvalidated.clear()
  }
}
