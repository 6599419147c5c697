import type { DatabaseSync } from 'node:sqlite'
import type { ApiObject } from '../../kube/object.ts'
import { fromBody, toBody } from './body.ts'
import type { ScopeKey } from './messages.ts'
import type { Seal } from './seal.ts'
import { prepare } from './statements.ts'

/** The writer's view of scopes and bodies: who refers to a body is counted here, and bodies left behind are swept here. */
export class Objects {
  readonly #seal: Seal
  readonly #scopes = new Map<string, number>()
  /** Bodies left by committed groups, in order of the group; `#left` are those of the transaction that runs. */
  #unreferenced: { group: number; id: number }[] = []
  #left: number[] = []
  readonly #sql

  constructor(db: DatabaseSync, seal: Seal) {
    this.#seal = seal
    this.#sql = {
      addScope: prepare(
        db,
        `INSERT INTO scope (identity, form, api_group, api_version, resource) VALUES (?, ?, ?, ?, ?)
         RETURNING id`,
      ),
      findScope: prepare(
        db,
        `SELECT id FROM scope
         WHERE identity = ? AND form = ? AND api_group = ? AND api_version = ? AND resource = ?`,
      ),
      find: prepare(
        db,
        `SELECT id FROM object WHERE scope = ? AND namespace = ? AND name = ? AND version = ? AND uid = ?`,
      ),
      insert: prepare(
        db,
        `INSERT INTO object (scope, namespace, name, uid, version, size, refs)
         VALUES (?, ?, ?, ?, ?, ?, ?)`,
      ),
      insertBody: prepare(db, 'INSERT INTO body (object, checksum, bytes) VALUES (?, ?, ?)'),
      refer: prepare(db, 'UPDATE object SET refs = refs + ? WHERE id = ?'),
      release: prepare(db, 'UPDATE object SET refs = refs - 1 WHERE id = ? RETURNING refs'),
      remove: prepare(db, 'DELETE FROM object WHERE id = ?'),
      leave: prepare(db, 'INSERT INTO leftover (object) VALUES (?)'),
      removeBody: prepare(db, 'DELETE FROM body WHERE object = ?'),
      removeLeftover: prepare(db, 'DELETE FROM leftover WHERE object = ?'),
      read: prepare(
        db,
        `SELECT namespace, name, uid, version, checksum, bytes FROM object
         JOIN body ON body.object = object.id WHERE object.id = ?`,
      ),
    }
  }

  scope(key: ScopeKey): number {
    const known = this.knownScope(key)
    if (known !== undefined) return known
    const id = Number(this.#sql.addScope.get(...key)?.[0])
    this.#scopes.set(JSON.stringify(key), id)
    return id
  }

  /** `undefined`: nothing was ever stored in it. */
  knownScope(key: ScopeKey): number | undefined {
    const text = JSON.stringify(key)
    const known = this.#scopes.get(text)
    if (known !== undefined) return known
    const row = this.#sql.findScope.get(...key)
    if (!row) return undefined
    this.#scopes.set(text, Number(row[0]))
    return Number(row[0])
  }

  /** Some are gone. */
  forgetScopes(): void {
    this.#scopes.clear()
  }

  /** Stores the body, or finds it stored, and counts `refs` more who refer to it. */
  acquire(key: ScopeKey, object: ApiObject, refs: number): number {
    const scope = this.scope(key)
    const { namespace, name, uid, resourceVersion } = object
    const found =
      resourceVersion === ''
        ? undefined
        : this.#sql.find.get(scope, namespace, name, resourceVersion, uid)
    if (found) {
      this.#sql.refer.run(refs, Number(found[0]))
      return Number(found[0])
    }
    const size = object.bytes.byteLength
    const id = this.#sql.insert.run(scope, namespace, name, uid, resourceVersion, size, refs)
    const { checksum, bytes } = toBody(this.#seal, key, object)
    this.#sql.insertBody.run(id, checksum, bytes)
    return id
  }

  /** One fewer refers to it; after the last one it is gone, and its body left to `sweep`. */
  release(id: number): void {
    const row = this.#sql.release.get(id)
    if (!row || Number(row[0]) > 0) return
    this.#sql.remove.run(id)
    this.#sql.leave.run(id)
    this.#left.push(id)
  }

  /** `undefined` when it is damaged. */
  read(key: ScopeKey, id: number): ApiObject | undefined {
    const row = this.#sql.read.get(id)
    if (!row) return undefined
    const [namespace, name, uid, version, checksum, bytes] = row
    const named = {
      namespace: String(namespace),
      name: String(name),
      uid: String(uid),
      resourceVersion: String(version),
    }
    const body = { checksum: Number(checksum), bytes: bytes as Uint8Array }
    const plain = fromBody(this.#seal, key, named, body)
    return plain && { ...named, bytes: plain }
  }

  /** Deletes bodies that groups up to `group` left. Within a transaction. */
  sweep(group: number): void {
    for (const { group: left, id } of this.#unreferenced) {
      if (left > group) break
      this.#sql.removeBody.run(id)
      this.#sql.removeLeftover.run(id)
    }
  }

  /** The transaction of `group` is committed, and has swept up to `swept`. */
  committed(group: number, swept: number): void {
    if (swept > 0) this.#unreferenced = this.#unreferenced.filter((entry) => entry.group > swept)
    for (const id of this.#left) this.#unreferenced.push({ group, id })
    this.#left = []
  }

  rolledBack(): void {
    this.#left = []
    this.#scopes.clear()
  }

  get unreferenced(): number {
    return this.#unreferenced.length
  }
}
