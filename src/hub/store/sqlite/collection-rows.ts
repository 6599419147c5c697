import type { DatabaseSync } from 'node:sqlite'
import { headChecksum, isHeadWhole } from './head-checksum.ts'
import type { DamagedParameters } from './object-row.ts'
import type { CollectionAddress } from './address.ts'
import type { CommitList } from './messages.ts'
import type { Objects } from './objects.ts'
import type { LoggedCollection } from './event-logs.ts'
import { prepare } from './statements.ts'

/** The row of a collection. Not `whole`: it missed a write, or its version is damaged. */
export interface CollectionRow extends LoggedCollection {
  readonly whole: boolean
}

/** The writer's access to the rows of collections: versions, and whether they may be served. */
export class CollectionRows {
  readonly #objects: Objects
  readonly #sql

  constructor(db: DatabaseSync, objects: Objects) {
    this.#objects = objects
    this.#sql = {
      find: prepare(
        db,
        `SELECT id, version, whole, checksum FROM collection
         WHERE scope = ? AND namespace = ? AND label_selector = ? AND field_selector = ?`,
      ),
      set: prepare(
        db,
        `INSERT INTO collection (scope, namespace, label_selector, field_selector,
           kind_group, kind_version, kind, version, confirmed_at, whole, holes, extra, checksum)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 0, ?, ?)
         ON CONFLICT DO UPDATE SET kind_group = excluded.kind_group, kind_version = excluded.kind_version,
           kind = excluded.kind, version = excluded.version, confirmed_at = excluded.confirmed_at,
           whole = 1, holes = 0, extra = excluded.extra, checksum = excluded.checksum
         RETURNING id`,
      ),
      confirm: prepare(
        db,
        'UPDATE collection SET version = ?, confirmed_at = ?, checksum = ? WHERE id = ?',
      ),
      invalidate: prepare(db, 'UPDATE collection SET whole = 0 WHERE id = ?'),
      markDamaged: prepare(
        db,
        `UPDATE collection SET holes = 1
         WHERE scope = ?1 AND id IN (
           SELECT collection FROM member
           WHERE namespace = ?2 AND name = ?3 AND version = ?4 AND body = ?5)`,
      ),
    }
  }

  find(address: CollectionAddress): CollectionRow | undefined {
    const { namespace, labelSelector, fieldSelector } = address
    const scope = this.#objects.scope(address.scope)
    const row = this.#sql.find.get(scope, namespace, labelSelector, fieldSelector)
    if (!row) return undefined
    const version = String(row[1])
    const whole = row[2] === 1 && isHeadWhole(row[3], address, version)
    return { id: Number(row[0]), scope, version, whole }
  }

  /** Writes the row for a complete list. Returns the row's id. */
  listed({ collection, gvk, version, confirmedAt, extra }: CommitList): number {
    const { namespace, labelSelector, fieldSelector } = collection
    const row = this.#sql.set.get(
      this.#objects.scope(collection.scope),
      namespace,
      labelSelector,
      fieldSelector,
      gvk.group,
      gvk.version,
      gvk.kind,
      version,
      confirmedAt,
      extra,
      headChecksum(collection, version),
    )
    return Number(row?.[0])
  }

  /** Events or a bookmark have advanced it to `version`. */
  confirm(id: number, address: CollectionAddress, version: string, at: number): void {
    this.#sql.confirm.run(version, at, headChecksum(address, version), id)
  }

  /** It missed a write. */
  invalidate(id: number): void {
    this.#sql.invalidate.run(id)
  }

  /** Marks the collections that hold the object as incomplete. */
  markDamaged(damaged: DamagedParameters): void {
    this.#sql.markDamaged.run(...damaged)
  }
}
