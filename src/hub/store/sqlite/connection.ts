import { sameFileCheck } from '../../../base/file-stamp.ts'
import { StoreFailure } from '../store.ts'
import type { Reads } from './reads.ts'
import type { ReportFault } from './faults.ts'

export interface ConnectionParts {
  readonly path: string
  /** What is read until there is a writer, and with it. */
  readonly reads: Reads
  /**
   * The same anew, as long as there was no writer yet: one that tried and failed may have changed
   * what lies there.
   */
  readonly readAlone: (() => Reads | undefined) | undefined
  readonly report: ReportFault
}

/** What this thread reads through, as the writer comes and goes. */
export class Connection {
  readonly #path: string
  readonly #report: ReportFault
  #reads: Reads
  #readAlone: (() => Reads | undefined) | undefined
  /** What was read through before there was a writer: lists go on with it. */
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

  /** As it is now; for what handles by itself that it cannot be read. */
  get reads(): Reads {
    return this.#reads
  }

  /** False where its file was removed or replaced under it. */
  isInPlace(): boolean {
    return this.#isInPlace()
  }

  /** What cannot be read, which is reported, is not known. */
  read<T>(read: (reads: Reads) => T): T | undefined {
    if (this.#isOver) return undefined
    try {
      return read(this.#reads)
    } catch (cause) {
      this.#report('read', new StoreFailure('the store cannot be read', { cause }))
      return undefined
    }
  }

  /** `reads`: what is read through from now on; absent: as before. */
  writerStarted(reads: Reads | undefined): void {
    if (!reads || reads === this.#reads) return
    // Not closed before the writer is: see `openReadsAlone`.
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

  /** From now on nothing is known. */
  end(): void {
    this.#isOver = true
  }

  /** Nobody reads any more. To be called before the writer is closed. */
  close(): void {
    this.#reads.close()
  }

  /** To be called after the writer is closed. */
  closeBefore(): void {
    this.#before?.close()
  }
}
