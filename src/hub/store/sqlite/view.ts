import { latest } from '../../../base/clock.ts'
import type { GVR } from '../../../api/kube/gvk.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import type { Identity } from '../../../api/request/identity.ts'
import type { RepresentationKey } from '../../../api/request/representation.ts'
import {
  StoreFailure,
  type Partition,
  type CollectionKey,
  type StoredCollection,
  type StoredPartition,
  type ObjectKey,
  type StoredList,
  type StoredObject,
} from '../store.ts'
import { addressOf, keyOf, scopeOf, type CollectionAddress, type ScopeKey } from './address.ts'
import type { Collections } from './collections.ts'
import type { Connection } from './connection.ts'
import type { Damage } from './damage.ts'
import type { Reads } from './reads.ts'
import { isRecent } from './recent.ts'
import type { ObjectRow } from './object-row.ts'
import { BatchReader } from './batch-reader.ts'
import type { Snapshots } from './snapshots.ts'
import {
  confirmedAtOf,
  newestState,
  withoutOutdated,
  currentState,
  type ObjectStates,
} from './object-states.ts'
import { mayFollow } from './versions.ts'

/** Reads the bodies of objects. Leaves damaged ones out, and reports them. */
export class Bodies {
  readonly #connection: Connection
  readonly #damage: Damage

  constructor(connection: Connection, damage: Damage) {
    this.#connection = connection
    this.#damage = damage
  }

  /** In the order given. Throws SQLite's errors. */
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

export interface ViewParts {
  readonly collections: Collections
  readonly damage: Damage
  readonly bodies: Bodies
  readonly snapshots: Snapshots
}

/**
 * The records that may be served: without collections that missed a write, and without damaged
 * records. As `ObjectStore` documents it; throws SQLite's errors.
 */
export class View {
  readonly #parts: ViewParts

  constructor(parts: ViewParts) {
    this.#parts = parts
  }

  get(
    reads: Reads,
    { partition, gvr, namespace, name }: ObjectKey,
  ): StoredObject | 'absent' | undefined {
    const { collections, bodies } = this.#parts
    const scope = scopeOf(partition, gvr)
    const states = this.#objectStates(reads, scope, namespace, name)
    if (!states) return undefined
    const found = currentState(
      states,
      ({ address, hasDamage }) => hasDamage || collections.hasDamage(address),
    )
    if (typeof found !== 'object') return found
    const [object] = bodies.of(reads, scope, [found.row])
    return (
      object && {
        gvk: found.gvk,
        object,
        confirmedVersion: found.confirmedVersion,
        confirmedAt: confirmedAtOf(states, found),
      }
    )
  }

  list(reads: Reads, key: CollectionKey): StoredList | undefined {
    const { collections, damage, bodies, snapshots } = this.#parts
    const address = addressOf(key)
    const state = collections.known(address)
    if (state?.unfit) return undefined
    const found = reads.atOnce(() => {
      const head = reads.head(address)
      if (head?.isDamaged) damage.head(address)
      return head?.whole ? { head, members: reads.members(head.id) } : undefined
    })
    if (!found) return undefined
    const { gvk, version, extra, confirmedAt } = found.head
    const hasDamage = found.head.hasDamage || collections.hasDamage(address)
    let isWhole = !hasDamage && !damage.isAmong(found.members)
    const batches = new BatchReader(found.members, snapshots.read(), (batch) => {
      const objects = bodies.batch(address.scope, batch)
      isWhole &&= objects.length === batch.length
      return objects
    })
    return {
      gvk,
      resourceVersion: version,
      extra,
      confirmedAt: latestOf(confirmedAt, state),
      batches,
      isWhole: () => isWhole,
      [Symbol.dispose]: () => void batches.return(),
    }
  }

  confirmedAt(reads: Reads, key: CollectionKey): number | undefined {
    const address = addressOf(key)
    const state = this.#parts.collections.known(address)
    if (state?.unfit) return undefined
    const head = reads.head(address)
    return head?.whole ? latestOf(head.confirmedAt, state) : undefined
  }

  version(reads: Reads, key: CollectionKey): string | undefined {
    const address = addressOf(key)
    const state = this.#parts.collections.known(address)
    return state ? state.version(reads) : wholeVersion(reads, address)
  }

  committedVersion(reads: Reads, key: CollectionKey): string | undefined {
    const address = addressOf(key)
    const state = this.#parts.collections.known(address)
    if (state?.unfit) return undefined
    return state?.committedVersion ?? wholeVersion(reads, address)
  }

  collections(
    reads: Reads,
    partition: Partition,
    gvr: GVR,
    namespace: string | undefined,
  ): StoredCollection[] {
    const found = reads.collections(scopeOf(partition, gvr), namespace ?? '')
    return this.#served(found, partition, gvr)
  }

  partitions(reads: Reads, gvr: GVR): StoredPartition[] {
    return reads.scopes(gvr.group, gvr.version, gvr.resource).map((scope) => {
      const [identity, representation] = scope
      const partition = {
        identity: identity as Identity,
        representation: representation as RepresentationKey,
      }
      return {
        partition,
        collections: this.#served(reads.collections(scope, undefined), partition, gvr),
        names: reads.allNames(scope),
      }
    })
  }

  /** Those of the collections that may be served, and are complete. */
  #served(
    found: ReturnType<Reads['collections']>,
    partition: Partition,
    gvr: GVR,
  ): StoredCollection[] {
    const { collections } = this.#parts
    return found.flatMap(({ address, version }) => {
      if (!collections.serves(address) || collections.hasDamage(address)) return []
      return [{ key: keyOf(partition, gvr, address), resourceVersion: version }]
    })
  }

  /** Whether a put changes nothing: the record is at this version, or something newer is stored. */
  hasRecorded(reads: Reads, scope: ScopeKey, object: ApiObject): boolean {
    const { namespace, name, uid, resourceVersion } = object
    const states = this.#objectStates(reads, scope, namespace, name)
    const known = states && newestState(states.forgotten ? withoutOutdated(states) : states)
    if (!known || resourceVersion === '') return false
    if (!mayFollow(resourceVersion, known.row.resourceVersion)) return true
    const record = states.record?.row
    return (
      record?.resourceVersion === resourceVersion &&
      record.uid === uid &&
      isRecent(confirmedAtOf(states, known)) &&
      !this.#parts.damage.isAmong([record])
    )
  }

  /** Without collections that missed a write. */
  #objectStates(
    reads: Reads,
    scope: ScopeKey,
    namespace: string,
    name: string,
  ): ObjectStates | undefined {
    const states = reads.objectStates(scope, namespace, name)
    return (
      states && {
        ...states,
        memberships: states.memberships.filter(({ address }) =>
          this.#parts.collections.serves(address),
        ),
      }
    )
  }
}

function wholeVersion(reads: Reads, address: CollectionAddress): string | undefined {
  const head = reads.head(address)
  return head?.whole ? head.version : undefined
}

/**
 * When a collection was confirmed, by the tables, which are some minutes behind, and by this
 * process.
 */
export const latestOf = (
  written: number,
  state: { readonly confirmedAt: number } | undefined,
): number => (state?.confirmedAt ? latest(written, state.confirmedAt) : written)
