import { CollectionState } from './collection-state.ts'
import type { CollectionAddress, ScopeKey } from './messages.ts'

/** Entries kept over all collections; those least lately used are read again when they are needed. */
const keptEntries = 100_000

/** The states of the collections that were written to in this run. */
export class Collections {
  readonly #states = new Map<string, CollectionState>()

  known(address: CollectionAddress): CollectionState | undefined {
    return this.#states.get(JSON.stringify(address))
  }

  of(address: CollectionAddress): CollectionState {
    const text = JSON.stringify(address)
    const state = this.#states.get(text) ?? new CollectionState(address)
    this.#states.delete(text)
    this.#states.set(text, state)
    this.#trim()
    return state
  }

  ofScope(scope: ScopeKey): CollectionState[] {
    return [...this.#states.values()].filter(({ address }) => isScope(address.scope, scope))
  }

  /** Whether some collection of the scope has missed a write. */
  unfit(scope: ScopeKey): boolean {
    for (const state of this.#states.values()) {
      if (state.unfit && isScope(state.address.scope, scope)) return true
    }
    return false
  }

  serves(address: CollectionAddress): boolean {
    return this.known(address)?.unfit !== true
  }

  holes(address: CollectionAddress): boolean {
    return this.known(address)?.holes === true
  }

  #trim(): void {
    let entries = 0
    for (const state of this.#states.values()) entries += state.size
    for (const state of this.#states.values()) {
      if (entries <= keptEntries) return
      if (!state.forgettable) continue
      entries -= state.size
      state.forget()
    }
  }
}

const isScope = (a: ScopeKey, b: ScopeKey): boolean => a.every((part, index) => part === b[index])
