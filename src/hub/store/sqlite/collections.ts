import { CollectionState } from './collection-state.ts'
import type { CollectionAddress, ScopeKey } from './address.ts'

/** Entries cached over all collections, least recently used first out: they can be read again. */
const keptEntries = 100_000
/** States cached: there is one for each token and selector ever used. */
const keptStates = 2_000

/** The states of the collections that were written to in this run. */
export class Collections {
  readonly #states = new Map<string, CollectionState>()
  /** For collections without a state. */
  #unsynced: boolean

  /** `unsynced`: writes of an earlier process may not be on the disk yet. */
  constructor(unsynced: boolean) {
    this.#unsynced = unsynced
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

  /** Staged objects are lost: lists in progress cannot be committed. */
  interrupt(): void {
    for (const state of this.#states.values()) state.interrupt()
  }

  /** The records of `identity` have changed by another way than its writes. */
  reload(identity: string): void {
    for (const state of this.#states.values())
      if (state.address.scope[0] === identity) state.reload()
  }

  serves(address: CollectionAddress): boolean {
    return this.known(address)?.unfit !== true
  }

  /** The number of collections with a failed write and no complete list since. */
  get unfit(): number {
    return [...this.#states.values()].filter((state) => state.unfit).length
  }

  hasDamage(address: CollectionAddress): boolean {
    return this.known(address)?.hasDamage === true
  }

  /** Evicts entries and states beyond the limits, least recently used first. */
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
