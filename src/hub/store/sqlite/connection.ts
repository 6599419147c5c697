import { sameFileCheck } from '../../../base/file-stamp.ts'
import { StoreFailure } from '../store.ts'
import type { Reads } from './reads.ts'
import type { ReportFault } from './faults.ts'

export interface ConnectionParts {
  readonly path: string
  /** The connection until a writer starts, and with that writer. */
  readonly reads: Reads
  /**
   * Opens the connection again while there was no writer yet: one that tried and failed may have
   * changed the file.
   */
  readonly readAlone: (() => Reads | undefined) | undefined
  readonly report: ReportFault
}

/** The read connection of this thread, while writers start and end. */
export class Connection {
  readonly #path: string
  readonly #report: ReportFault
  #reads: Reads
  #readAlone: (() => Reads | undefined) | undefined
  /** The connection from before the first writer: lists still read from it. */
  #before: Reads | undefined
  #isInPlace: () => boolean
  #isOver = false

  constructor({ path, reads, readAlone, report }: ConnectionParts) {
    this.#path = path
    this.#reads = reads
    this.#readAlone = readAlone
    this.#report = report
    this.#isInPlace = sameFileCheck(path)
  }

  /** The current connection, for callers that handle read errors themselves. */
  get reads(): Reads {
    return this.#reads
  }

  /** False: the file was removed or replaced. */
  isInPlace(): boolean {
    return this.#isInPlace()
  }

  /** `undefined` where SQLite throws, which is reported. */
  read<T>(read: (reads: Reads) => T): T | undefined {
    if (this.#isOver) return undefined
    try {
      return read(this.#reads)
    } catch (cause) {
      this.#report('read', new StoreFailure('the store cannot be read', { cause }))
      return undefined
    }
  }

  /** `reads`: the connection from now on; absent: as before. */
  writerStarted(reads: Reads | undefined): void {
    if (!reads || reads === this.#reads) return
    // Closed only after the writer: see `openReadsAlone`.
    this.#before = this.#reads
    this.#readAlone = undefined
    this.#reads = reads
    this.#isInPlace = sameFileCheck(this.#path)
  }

  writerEnded(): void {
    const alone = this.#readAlone?.()
    if (!alone) return
    this.#reads.close()
    this.#reads = alone
  }

  /** From now on `read` returns `undefined`. */
  end(): void {
    this.#isOver = true
  }

  /** Must be called before the writer is closed. */
  close(): void {
    this.#reads.close()
  }

  /** Must be called after the writer is closed. */
  closeBefore(): void {
    this.#before?.close()
  }
}
