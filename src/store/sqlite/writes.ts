import { crc32 } from 'node:zlib'
import type { DatabaseSync } from 'node:sqlite'
import type { ApiObject } from '../../kube/object.ts'
import { IdleAudiences } from './idle-audiences.ts'
import {
  pack,
  unpack,
  type Apply,
  type CollectionAddress,
  type Displaced,
  type Flip,
  type Forget,
  type Operation,
  type Put,
  type PutDocument,
  type Stage,
} from './messages.ts'
import type { Objects } from './objects.ts'
import { prepare } from './statements.ts'
import { mayFollow, newest } from './versions.ts'

/** A row of `object` without its body. */
type Stored = Omit<ApiObject, 'bytes'> & { readonly id: number; readonly size: number }

interface Held {
  readonly object: number
  readonly version: string
  readonly uid: string
}

/** Carries out operations, each within a transaction that others may share; throws what SQLite throws. */
export class Writes {
  readonly #objects: Objects
  readonly #idle: IdleAudiences
  readonly #sql

  constructor(db: DatabaseSync, objects: Objects) {
    this.#objects = objects
    this.#idle = new IdleAudiences(db, objects)
    const held = 'JOIN object ON object.id = held.object'
    this.#sql = {
      collection: prepare(
        db,
        `SELECT id, version, whole FROM collection
         WHERE scope = ? AND namespace = ? AND label_selector = ? AND field_selector = ?`,
      ),
      setCollection: prepare(
        db,
        `INSERT INTO collection (scope, namespace, label_selector, field_selector,
           kind_group, kind_version, kind, version, confirmed_at, whole, holes, extra)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 0, ?)
         ON CONFLICT DO UPDATE SET kind_group = excluded.kind_group, kind_version = excluded.kind_version,
           kind = excluded.kind, version = excluded.version, confirmed_at = excluded.confirmed_at,
           whole = 1, holes = 0, extra = excluded.extra
         RETURNING id`,
      ),
      confirm: prepare(db, 'UPDATE collection SET version = ?, confirmed_at = ? WHERE id = ?'),
      disown: prepare(db, 'UPDATE collection SET whole = 0 WHERE id = ?'),
      holes: prepare(
        db,
        `UPDATE collection SET holes = 1
         WHERE scope = (SELECT scope FROM object WHERE id = ?1)
           AND id IN (SELECT collection FROM member WHERE object = ?1)`,
      ),
      member: prepare(
        db,
        'SELECT object, version, uid FROM member WHERE collection = ? AND namespace = ? AND name = ?',
      ),
      setMember: prepare(
        db,
        `INSERT INTO member (collection, namespace, name, object, uid, version, size)
         VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET object = excluded.object, uid = excluded.uid,
           version = excluded.version, size = excluded.size`,
      ),
      removeMember: prepare(
        db,
        'DELETE FROM member WHERE collection = ? AND namespace = ? AND name = ?',
      ),
      single: prepare(
        db,
        `SELECT object.id, object.version, object.uid FROM single AS held ${held}
         WHERE held.scope = ? AND held.namespace = ? AND held.name = ?`,
      ),
      setSingle: prepare(
        db,
        `INSERT INTO single (scope, namespace, name, object, kind_group, kind_version, kind)
         VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET object = excluded.object, kind_group = excluded.kind_group,
           kind_version = excluded.kind_version, kind = excluded.kind`,
      ),
      moveSingle: prepare(
        db,
        'UPDATE single SET object = ? WHERE scope = ? AND namespace = ? AND name = ?',
      ),
      removeSingle: prepare(
        db,
        'DELETE FROM single WHERE scope = ? AND namespace = ? AND name = ?',
      ),
      held: prepare(
        db,
        `SELECT 1 FROM collection JOIN member ON member.collection = collection.id
         WHERE collection.scope = ?1 AND collection.namespace IN ('', ?2)
           AND member.namespace = ?2 AND member.name = ?3 LIMIT 1`,
      ),
      setForgotten: prepare(
        db,
        'INSERT INTO forgotten (scope, namespace, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
      ),
      forgotten: prepare(
        db,
        'SELECT 1 FROM forgotten WHERE scope = ? AND namespace = ? AND name = ?',
      ),
      recall: prepare(db, 'DELETE FROM forgotten WHERE scope = ? AND namespace = ? AND name = ?'),
      recallMembers: prepare(
        db,
        `DELETE FROM forgotten WHERE scope = ?1 AND EXISTS (
           SELECT 1 FROM member WHERE collection = ?2
             AND member.namespace = forgotten.namespace AND member.name = forgotten.name)`,
      ),
      stage: prepare(
        db,
        'INSERT INTO staged (object, replacement) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1',
      ),
      staged: prepare(
        db,
        `SELECT staged.object, object.namespace, object.name, object.uid, object.version, object.size
         FROM staged
         JOIN object ON object.id = staged.object WHERE staged.replacement = ? ORDER BY staged.object`,
      ),
      unstage: prepare(db, 'DELETE FROM staged WHERE replacement = ?'),
      forgetMembers: prepare(db, 'DELETE FROM member WHERE object = ?'),
      forgetSingles: prepare(db, 'DELETE FROM single WHERE object = ?'),
      forgetStaged: prepare(db, 'DELETE FROM staged WHERE object = ?'),
      forgetObject: prepare(db, 'DELETE FROM object WHERE id = ?'),
      forgetBody: prepare(db, 'DELETE FROM body WHERE object = ?'),
      setDocument: prepare(
        db,
        `INSERT INTO document (identity, url, accept, content_type, checksum, body)
         VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET content_type = excluded.content_type, checksum = excluded.checksum,
           body = excluded.body`,
      ),
    }
  }

  carryOut(operation: Operation): Displaced | undefined {
    switch (operation.kind) {
      case 'stage':
        return this.#stage(operation)
      case 'flip':
        return this.#flip(operation)
      case 'discard':
        return this.#discard(operation.replacement)
      case 'apply':
        return this.#apply(operation)
      case 'put':
        return this.#put(operation)
      case 'forget':
        return this.#forget(operation)
      case 'document':
        return this.#document(operation)
      case 'quarantine':
        for (const id of operation.objects) this.#quarantine(id)
        return undefined
      case 'disown': {
        const collection = this.#collection(operation.collection)
        if (collection) this.#sql.disown.run(collection.id)
        return undefined
      }
      case 'age':
        this.#idle.age(operation.day)
        return undefined
      case 'used':
        this.#idle.used(operation.identity)
        return undefined
      case 'forget-audience':
        this.#idle.forget(operation.identity)
        return undefined
    }
  }

  #stage({ collection, replacement, objects }: Stage): undefined {
    for (const object of unpack(objects)) {
      const id = this.#objects.acquire(collection.scope, object, 1)
      if (!this.#sql.stage.get(id, replacement)) this.#objects.release(id)
    }
  }

  /** The reference that a staged row holds passes to its member, so that bodies are not written again. */
  #flip(flip: Flip): undefined {
    const { scope, namespace, labelSelector, fieldSelector } = flip.collection
    const { group, version, kind } = flip.gvk
    const scopeId = this.#objects.scope(scope)
    const row = this.#sql.setCollection.get(
      scopeId,
      namespace,
      labelSelector,
      fieldSelector,
      group,
      version,
      kind,
      flip.version,
      flip.confirmedAt,
      flip.extra,
    )
    const id = Number(row?.[0])
    for (const [of, name] of flip.removed) {
      this.#removeMember(id, of, name)
      this.#removeSingle(scopeId, of, name, flip.listed)
      this.#recallUnheld(scopeId, of, name)
    }
    const overtaken = new Set(flip.overtaken.map((pair) => JSON.stringify(pair)))
    for (const [object, of, name, uid, version, size] of this.#sql.staged.all(flip.replacement)) {
      if (overtaken.size > 0 && overtaken.has(JSON.stringify([of, name]))) {
        this.#objects.release(Number(object))
      } else {
        this.#setMember(id, {
          id: Number(object),
          namespace: String(of),
          name: String(name),
          uid: String(uid),
          resourceVersion: String(version),
          size: Number(size),
        })
      }
    }
    this.#sql.unstage.run(flip.replacement)
    this.#sql.recallMembers.run(scopeId, id)
  }

  #discard(replacement: number): undefined {
    for (const [object] of this.#sql.staged.all(replacement)) this.#objects.release(Number(object))
    this.#sql.unstage.run(replacement)
  }

  #apply(apply: Apply): Displaced {
    const { scope } = apply.collection
    const found = apply.whole ? this.#collection(apply.collection) : undefined
    const collection = found?.whole ? found : undefined
    const positions: number[] = []
    const previous: ApiObject[] = []
    const damaged: number[] = []
    unpack(apply.objects).forEach((object, position) => {
      const member = collection && this.#member(collection.id, object.namespace, object.name)
      if (member) {
        const held = this.#objects.read(scope, member.object)
        if (held) {
          positions.push(position)
          previous.push(held)
        } else {
          damaged.push(member.object)
        }
      }
      if (apply.deleted[position]) this.#deleted(apply, collection?.id, member, object)
      else this.#changed(apply, collection?.id, member, object)
    })
    if (collection) {
      const version = newest(collection.version, apply.version)
      this.#sql.confirm.run(version, apply.confirmedAt, collection.id)
    }
    return { positions, objects: pack(previous), damaged }
  }

  #deleted(
    { collection: { scope } }: Apply,
    collection: number | undefined,
    member: Held | undefined,
    { namespace, name, resourceVersion }: ApiObject,
  ): void {
    if (collection !== undefined && member && mayFollow(resourceVersion, member.version)) {
      this.#removeMember(collection, namespace, name)
    }
    const scopeId = this.#objects.scope(scope)
    this.#removeSingle(scopeId, namespace, name, resourceVersion)
    this.#recallUnheld(scopeId, namespace, name)
  }

  #changed(
    { collection: { scope } }: Apply,
    collection: number | undefined,
    member: Held | undefined,
    object: ApiObject,
  ): void {
    const { namespace, name } = object
    const scopeId = this.#objects.scope(scope)
    const single = this.#single(scopeId, namespace, name)
    const joins = collection !== undefined && (!member || isChange(object, member))
    if (joins || member?.version === object.resourceVersion) {
      this.#sql.recall.run(scopeId, namespace, name)
    }
    const moves = single !== undefined && isChange(object, single)
    if (!joins && !moves) return
    const id = this.#objects.acquire(scope, object, Number(joins) + Number(moves))
    if (joins) {
      const { uid, resourceVersion, bytes } = object
      const size = bytes.byteLength
      this.#setMember(collection, { id, namespace, name, uid, resourceVersion, size })
    }
    if (moves) {
      this.#sql.moveSingle.run(id, scopeId, namespace, name)
      this.#objects.release(single.object)
    }
  }

  #put({ scope, gvk, objects }: Put): undefined {
    const scopeId = this.#objects.scope(scope)
    for (const object of unpack(objects)) {
      const { namespace, name } = object
      const single = this.#single(scopeId, namespace, name)
      if (single && !isChange(object, single)) continue
      const id = this.#objects.acquire(scope, object, 1)
      const { group, version, kind } = gvk
      this.#sql.setSingle.run(scopeId, namespace, name, id, group, version, kind)
      this.#sql.recall.run(scopeId, namespace, name)
      if (single) this.#objects.release(single.object)
    }
  }

  /** Members stay, as the list is still what the cloud gave at its version; that they are not to be answered by name is noted. */
  #forget({ scope, namespace, name }: Forget): undefined {
    const scopeId = this.#objects.knownScope(scope)
    if (scopeId === undefined) return
    this.#removeSingle(scopeId, namespace, name)
    if (this.#sql.held.get(scopeId, namespace, name)) {
      this.#sql.setForgotten.run(scopeId, namespace, name)
    }
  }

  #document({ key, contentType, body }: PutDocument): undefined {
    this.#sql.setDocument.run(...key, contentType, crc32(body), body)
  }

  #quarantine(id: number): void {
    this.#sql.holes.run(id)
    this.#sql.forgetMembers.run(id)
    this.#sql.forgetSingles.run(id)
    this.#sql.forgetStaged.run(id)
    this.#sql.forgetObject.run(id)
    this.#sql.forgetBody.run(id)
  }

  #collection(
    address: CollectionAddress,
  ): { id: number; version: string; whole: boolean } | undefined {
    const { scope, namespace, labelSelector, fieldSelector } = address
    const scopeId = this.#objects.scope(scope)
    const row = this.#sql.collection.get(scopeId, namespace, labelSelector, fieldSelector)
    return row && { id: Number(row[0]), version: String(row[1]), whole: row[2] === 1 }
  }

  #member(collection: number, namespace: string, name: string): Held | undefined {
    return toHeld(this.#sql.member.get(collection, namespace, name))
  }

  #single(scope: number, namespace: string, name: string): Held | undefined {
    return toHeld(this.#sql.single.get(scope, namespace, name))
  }

  /** Not if it is newer than `upTo`. */
  #removeSingle(scope: number, namespace: string, name: string, upTo?: string): void {
    const single = this.#single(scope, namespace, name)
    if (!single || (upTo !== undefined && !mayFollow(upTo, single.version))) return
    this.#sql.removeSingle.run(scope, namespace, name)
    this.#objects.release(single.object)
  }

  /** What no collection holds any more needs no note that it is gone. */
  #recallUnheld(scope: number, namespace: string, name: string): void {
    if (!this.#sql.forgotten.get(scope, namespace, name)) return
    if (!this.#sql.held.get(scope, namespace, name)) this.#sql.recall.run(scope, namespace, name)
  }

  /** Takes over one reference to the object. */
  #setMember(collection: number, object: Stored): void {
    const { id, namespace, name, uid, resourceVersion, size } = object
    const member = this.#member(collection, namespace, name)
    if (member?.object !== id) {
      this.#sql.setMember.run(collection, namespace, name, id, uid, resourceVersion, size)
    }
    if (member) this.#objects.release(member.object)
  }

  #removeMember(collection: number, namespace: string, name: string): void {
    const member = this.#member(collection, namespace, name)
    if (!member) return
    this.#sql.removeMember.run(collection, namespace, name)
    this.#objects.release(member.object)
  }
}

const toHeld = (row: readonly unknown[] | undefined): Held | undefined =>
  row && { object: Number(row[0]), version: String(row[1]), uid: String(row[2]) }

/** Neither what is held already nor older. */
const isChange = ({ resourceVersion, uid }: ApiObject, held: Held): boolean =>
  mayFollow(resourceVersion, held.version) &&
  (resourceVersion === '' || resourceVersion !== held.version || uid !== held.uid)
