/** Bodies that may be kept for lists still being read, before the slowest reader loses its own. */
const keptForReaders = 20_000

/** A list being read: bodies that were its members when it began are kept until it is done. */
export interface Reading extends Disposable {
  /** False: it took too long, its bodies may be gone. */
  readonly valid: boolean
}

interface Reader {
  readonly since: number
  valid: boolean
}

/**
 * Knows which bodies are still needed by lists that are being read. A list is read body by body
 * over many turns of the loop; a read transaction held for as long would keep the log from being
 * checkpointed, so instead the writer is told how far it may sweep.
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

  /** Another writer begins, which counts its groups anew and drops what nobody refers to. */
  restart(): void {
    this.#giveUp(this.#group)
    this.#group = 0
  }

  /** The room is needed: those that began first lose theirs. False: nobody reads. */
  giveUpFirst(): boolean {
    if (this.#readers.size === 0) return false
    this.#giveUp(this.sweepable())
    return true
  }

  /** On those that began up to `group`. */
  #giveUp(group: number): void {
    for (const reader of this.#readers) {
      if (reader.since > group) continue
      reader.valid = false
      this.#readers.delete(reader)
    }
  }

  /** Bodies that became unreferenced in groups up to this one are read by nobody. */
  sweepable(): number {
    let upTo = this.#group
    for (const { since } of this.#readers) upTo = Math.min(upTo, since)
    return upTo
  }

  /** To be called in the turn in which the members were collected. */
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
