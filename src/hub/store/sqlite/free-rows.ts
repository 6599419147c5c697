/** An unreferenced row of `body`. */
export interface FreeRow {
  readonly id: number
  readonly room: number
}

/** Rows kept for later bodies of their size; further ones are deleted. */
const kept = 128
/** Rows deleted in one transaction. */
const deletedAtOnce = 256

/**
 * Unreferenced rows of `body` by size, to be used again. A rollback returns the rows that its
 * transaction took.
 */
export class FreeRows {
  readonly #byRoom = new Map<number, number[]>()
  #count = 0
  #taken: FreeRow[] = []

  add({ id, room }: FreeRow): void {
    const ids = this.#byRoom.get(room)
    if (ids) ids.push(id)
    else this.#byRoom.set(room, [id])
    this.#count += 1
  }

  take(room: number): number | undefined {
    const ids = this.#byRoom.get(room)
    const id = ids?.pop()
    if (id === undefined) return undefined
    if (ids?.length === 0) this.#byRoom.delete(room)
    this.#count -= 1
    this.#taken.push({ id, room })
    return id
  }

  /** Takes the rows beyond the limit; or `of` rows. */
  *takeSurplus(of?: number): Generator<number> {
    const most =
      of === undefined ? Math.min(this.#count - kept, deletedAtOnce) : Math.min(of, this.#count)
    for (let i = 0; i < most; i += 1) {
      const [room = 0] = this.#byRoom.keys()
      const id = this.take(room)
      if (id !== undefined) yield id
    }
  }

  get bytes(): number {
    return this.#byRoom.entries().reduce((bytes, [room, ids]) => bytes + room * ids.length, 0)
  }

  committed(): void {
    this.#taken = []
  }

  rolledBack(): void {
    for (const spare of this.#taken.splice(0)) this.add(spare)
  }
}
