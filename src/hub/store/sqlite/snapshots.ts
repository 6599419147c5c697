/** Unreferenced bodies kept for list reads, before the slowest read is ended. */
const keptForReaders = 20_000

/** A list that is being read. Its bodies are kept until it is disposed of. */
export interface Reading extends Disposable {
  /** False: it took too long, and its bodies may be gone. */
  readonly valid: boolean
}

interface Reader {
  readonly since: number
  valid: boolean
}

/**
 * Knows which bodies list reads still need. A list is read over many turns of the event loop. A
 * read transaction for as long would keep the WAL from being restarted; instead the writer is given
 * the last group that it may sweep.
 */
export class Snapshots {
  readonly #readers = new Set<Reader>()
  readonly #forgotten = new FinalizationRegistry<Reader>((reader) => this.#readers.delete(reader))
  #group = 0

  /** `group` has been committed, and `unreferenced` bodies are waiting to be swept. */
  committed(group: number, unreferenced: number): void {
    this.#group = group
    if (unreferenced > keptForReaders) this.#giveUp(this.sweepable())
  }

  /** Another writer starts: it counts groups from zero, and deletes unreferenced bodies. */
  restart(): void {
    this.#giveUp(this.#group)
    this.#group = 0
  }

  /** Ends the oldest reads, for their room. False: there is none. */
  giveUpFirst(): boolean {
    if (this.#readers.size === 0) return false
    this.#giveUp(this.sweepable())
    return true
  }

  /** Ends the reads that began up to `group`. */
  #giveUp(group: number): void {
    for (const reader of this.#readers) {
      if (reader.since > group) continue
      reader.valid = false
      this.#readers.delete(reader)
    }
  }

  /** The last group whose unreferenced bodies no read needs. */
  sweepable(): number {
    let upTo = this.#group
    for (const { since } of this.#readers) upTo = Math.min(upTo, since)
    return upTo
  }

  /** Must be called in the turn in which the rows were read. */
  read(): Reading {
    const reader: Reader = { since: this.#group, valid: true }
    const reading: Reading = {
      get valid() {
        return reader.valid
      },
      [Symbol.dispose]: () => {
        this.#readers.delete(reader)
        this.#forgotten.unregister(reader)
      },
    }
    this.#readers.add(reader)
    this.#forgotten.register(reading, reader, reader)
    return reading
  }
}
