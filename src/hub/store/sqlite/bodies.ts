import type { ApiObject } from '../../../api/kube/object.ts'
import { StoreFailure } from '../store.ts'
import type { Connection } from './connection.ts'
import type { Damage } from './damage.ts'
import type { ScopeKey } from './address.ts'
import type { Reads } from './reads.ts'
import type { ObjectRow } from './object-row.ts'

/** Reads the bodies of objects. Leaves damaged ones out, and reports them. */
export class Bodies {
  readonly #connection: Connection
  readonly #damage: Damage

  constructor(connection: Connection, damage: Damage) {
    this.#connection = connection
    this.#damage = damage
  }

  /** In the order given. Throws what SQLite throws. */
  of(reads: Reads, scope: ScopeKey, wanted: readonly ObjectRow[]): readonly ApiObject[] {
    return reads.bodies(scope, wanted, (stored) => this.#damage.object(scope, stored))
  }

  /**
   * Reads a batch of a list whose first batches were sent already: throws a `StoreFailure` where it
   * cannot be read.
   */
  batch(scope: ScopeKey, batch: readonly ObjectRow[]): readonly ApiObject[] {
    const objects = this.#connection.read((reads) => this.of(reads, scope, batch))
    if (!objects) throw new StoreFailure('the other objects of the list cannot be read')
    return objects
  }
}
