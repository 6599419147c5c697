import type { Worker } from 'node:worker_threads'
import { StoreFailure } from '../store.ts'
import type { Displaced, EvictionStep, GroupDone, OperationGroup, Operation } from './messages.ts'
import type { Snapshots } from './snapshots.ts'

/** Bytes that may wait for the writer before further list batches have to wait, too. */
export const highWater = 4 << 20
/** Bytes in one commit, which later writes wait for. */
export const groupBytes = 1 << 20

export interface Write {
  /**
   * Called when the write is sent, as it may depend on earlier writes; `undefined`: those failed.
   */
  readonly operation: () => Operation | undefined
  readonly bytes: number
  /** Called before any later write is sent. */
  readonly settled?: (failure?: StoreFailure) => void
  /** Called with the result of an eviction step. */
  readonly stepped?: (step: EvictionStep) => void
  /**
   * Commits alone: it deletes rows that other operations of the commit could refer to. `first`:
   * before all waiting writes.
   */
  readonly alone?: true | 'first'
}

/**
 * Called with the bytes of objects and documents of each commit; not for the store's own writes.
 */
export type OnCommitted = (bytes: number) => void

export interface EvictionHooks {
  /** Called after a commit that leaves the database nearly full. */
  readonly onNearFull: () => void
  /** Called after a commit that leaves an identity beyond its quota. */
  readonly onOverQuota: (identity: string) => void
}

interface Waiting extends Write {
  readonly done: PromiseWithResolvers<Displaced | undefined>
}

/**
 * Sends operations to the writer in order. While a group is being committed, others wait and form
 * the next group: the slower the disk, the larger the groups.
 */
export class WriteQueue {
  #worker: Worker | undefined
  readonly #snapshots: Snapshots
  readonly #onCommitted: OnCommitted
  readonly #hooks: EvictionHooks
  readonly #waiting: Waiting[] = []
  #committing: (Waiting & { readonly kind: Operation['kind'] })[] = []
  #scheduled = false
  #bytes = 0
  #roomier: PromiseWithResolvers<void> | undefined
  #drained: PromiseWithResolvers<void> | undefined
  #refusal: StoreFailure | undefined = new StoreFailure('there is no writer')
  #closed = false

  /** Refuses all writes until there is a writer. */
  constructor(snapshots: Snapshots, onCommitted: OnCommitted, hooks: EvictionHooks) {
    this.#onCommitted = onCommitted
    this.#hooks = hooks
    this.#snapshots = snapshots
  }

  /** Sends writes to this writer from now on. */
  attach(worker: Worker): void {
    this.#worker = worker
    worker.on('message', (done: GroupDone) => this.#answered(done))
    worker.unref()
    if (!this.#closed) this.#refusal = undefined
  }

  /** Resolves when it is committed, rejects with a `StoreFailure`. */
  push(write: Write): Promise<Displaced | undefined> {
    if (this.#refusal) {
      write.settled?.(this.#refusal)
      return Promise.reject(this.#refusal)
    }
    const done = Promise.withResolvers<Displaced | undefined>()
    this.#bytes += write.bytes
    if (write.alone === 'first') this.#waiting.unshift({ ...write, done })
    else this.#waiting.push({ ...write, done })
    this.#schedule()
    return done.promise
  }

  /** Resolves when more may be pushed. */
  async room(): Promise<void> {
    while (this.#bytes >= highWater && !this.#refusal) {
      this.#roomier ??= Promise.withResolvers<void>()
      await this.#roomier.promise
    }
  }

  /** Refuses further writes; resolves when all accepted ones have been answered. */
  async close(): Promise<void> {
    this.#closed = true
    this.#refusal ??= new StoreFailure('the store is closed')
    if (this.#waiting.length + this.#committing.length === 0) return
    this.#drained = Promise.withResolvers<void>()
    await this.#drained.promise
  }

  /** The writer has ended: refuses waiting and further writes until there is another. */
  refuse(failure: StoreFailure): void {
    this.#refusal ??= failure
    for (const write of [...this.#committing.splice(0), ...this.#waiting.splice(0)]) {
      this.#settle(write, failure)
    }
    this.#rest()
  }

  /** Writes of one turn of the event loop form one group. */
  #schedule(): void {
    if (this.#scheduled || this.#committing.length > 0) return
    this.#scheduled = true
    queueMicrotask(() => {
      this.#scheduled = false
      this.#send()
    })
  }

  #send(): void {
    if (this.#committing.length > 0) return
    const operations: Operation[] = []
    let bytes = 0
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      if (operations.length > 0 && (next.alone || bytes + next.bytes > groupBytes)) break
      this.#waiting.shift()
      const operation = next.operation()
      if (operation) {
        bytes += next.bytes
        operations.push(operation)
        this.#committing.push({ ...next, kind: operation.kind })
        if (next.alone) break
      } else {
        this.#settle(next, new StoreFailure('an earlier write of the collection failed'))
      }
    }
    if (operations.length === 0) return this.#rest()
    const group: OperationGroup = { operations, sweepUpTo: this.#snapshots.sweepable() }
    this.#worker?.ref()
    this.#worker?.postMessage(group, operations.flatMap(buffersOf))
  }

  #answered({ outcomes, group, unreferenced, isNearFull, overQuota }: GroupDone): void {
    const committed = this.#committing
    this.#committing = []
    this.#worker?.unref()
    this.#snapshots.committed(group, unreferenced)
    const taken = committed.filter(({ kind }, index) => outcomes[index]?.ok && !isOwn[kind])
    if (taken.length > 0) this.#onCommitted(taken.reduce((sum, { bytes }) => sum + bytes, 0))
    // After `onCommitted`, so that a failure is reported last.
    committed.forEach((write, index) => {
      const outcome = outcomes[index]
      if (outcome?.ok && outcome.step) write.stepped?.(outcome.step)
      if (outcome?.ok) this.#settle(write, undefined, outcome.displaced)
      else this.#settle(write, new StoreFailure(outcome?.message, { cause: outcome }))
    })
    if (isNearFull) this.#hooks.onNearFull()
    for (const identity of overQuota) this.#hooks.onOverQuota(identity)
    this.#send()
    this.#rest()
  }

  #settle(write: Waiting, failure: StoreFailure | undefined, displaced?: Displaced): void {
    this.#bytes -= write.bytes
    write.settled?.(failure)
    if (failure) write.done.reject(failure)
    else write.done.resolve(displaced)
  }

  #rest(): void {
    if (this.#bytes < highWater || this.#refusal) {
      this.#roomier?.resolve()
      this.#roomier = undefined
    }
    if (this.#waiting.length + this.#committing.length === 0) this.#drained?.resolve()
  }
}

/** The store's own writes, which may succeed on a disk that refuses all others. */
const isOwn: Readonly<Record<Operation['kind'], boolean>> = {
  stage: false,
  'commit-list': false,
  apply: false,
  put: false,
  forget: false,
  document: false,
  discard: true,
  quarantine: true,
  invalidate: true,
  'count-day': true,
  'mark-used': true,
  'forget-identity': true,
  trial: true,
  'mark-scope': true,
  evict: true,
}

function buffersOf(operation: Operation): ArrayBuffer[] {
  if ('objects' in operation) return [operation.objects.bytes.buffer]
  return 'body' in operation ? [operation.body.buffer] : []
}
