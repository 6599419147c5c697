import { CollectionState } from './collection-state.ts'
import type { CollectionAddress, ScopeKey } from './address.ts'

/**
 * Entries kept over all collections; those least lately used are read again when they are needed.
 */
const keptEntries = 100_000
/** States kept; there is one for each token and selector that was ever used. */
const keptStates = 2_000

/** The states of the collections that were written to in this run. */
export class Collections {
  readonly #states = new Map<string, CollectionState>()
  /** Of what nothing is known. */
  #unsynced: boolean

  /** `loose`: what an earlier run wrote may not be on the disk yet. */
  constructor(loose: boolean) {
    this.#unsynced = loose
  }

  known(address: CollectionAddress): CollectionState | undefined {
    return this.#states.get(JSON.stringify(address))
  }

  of(address: CollectionAddress): CollectionState {
    const text = JSON.stringify(address)
    const known = this.#states.get(text)
    const state = known ?? new CollectionState(address, this.#unsynced)
    this.#states.delete(text)
    this.#states.set(text, state)
    if (!known) this.trim()
    return state
  }

  ofScope(scope: ScopeKey): CollectionState[] {
    return [...this.#states.values()].filter(({ address }) => isScope(address.scope, scope))
  }

  /** What is staged is lost: lists that are coming in cannot be committed. */
  interrupt(): void {
    for (const state of this.#states.values()) state.interrupt()
  }

  /** What is stored for `identity` is not what it was. */
  reload(identity: string): void {
    for (const state of this.#states.values())
      if (state.address.scope[0] === identity) state.reload()
  }

  serves(address: CollectionAddress): boolean {
    return this.known(address)?.unfit !== true
  }

  /** Collections to which a write failed and of which no whole list has been committed since. */
  get unfit(): number {
    let count = 0
    for (const state of this.#states.values()) if (state.unfit) count++
    return count
  }

  hasDamage(address: CollectionAddress): boolean {
    return this.known(address)?.hasDamage === true
  }

  /** Forgets what can be read again, least lately used first, where there is too much of it. */
  trim(): void {
    let entries = 0
    for (const state of this.#states.values()) entries += state.size
    for (const [text, state] of this.#states) {
      if (entries <= keptEntries && this.#states.size <= keptStates) return
      if (!state.forgettable) continue
      entries -= state.size
      state.forget()
      if (this.#states.size <= keptStates || !state.idle) continue
      this.#states.delete(text)
      this.#unsynced ||= state.unsynced
    }
  }
}

const isScope = (a: ScopeKey, b: ScopeKey): boolean => a.every((part, index) => part === b[index])
