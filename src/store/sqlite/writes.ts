import { crc32 } from 'node:zlib'
import type { DatabaseSync } from 'node:sqlite'
import type { ApiObject } from '../../kube/object.ts'
import { resourceVersion } from '../../kube/resource-version.ts'
import { Eviction, type Step } from './eviction.ts'
import { headChecksum, isHeadWhole } from './head-checksum.ts'
import { IdleAudiences } from './idle-audiences.ts'
import {
  pack,
  unpack,
  type Apply,
  type CollectionAddress,
  type Damaged,
  type Discard,
  type Displaced,
  type Evict,
  type Flip,
  type Forget,
  type Operation,
  type Put,
  type PutDocument,
  type Quarantine,
  type Stage,
} from './messages.ts'
import type { Held, Objects } from './objects.ts'
import { Rings, type Ringed } from './rings.ts'
import { prepare, type Row, type Statement } from './statements.ts'
import { following, isAtLeast, isNewer, isPast, mayFollow, newest } from './versions.ts'

/** Carries out operations, each within a transaction that others may share; throws what SQLite throws. */
export class Writes {
  readonly #objects: Objects
  readonly #rings: Rings
  readonly #idle: IdleAudiences
  readonly #eviction: Eviction
  readonly #sql

  constructor(db: DatabaseSync, objects: Objects, maxBytes: number) {
    this.#objects = objects
    this.#rings = new Rings(db, objects)
    this.#idle = new IdleAudiences(db, objects, this.#rings)
    this.#eviction = new Eviction(db, objects, this.#rings, maxBytes)
    this.#sql = {
      collection: prepare(
        db,
        `SELECT id, version, whole, checksum FROM collection
         WHERE scope = ? AND namespace = ? AND label_selector = ? AND field_selector = ?`,
      ),
      setCollection: prepare(
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
      disown: prepare(db, 'UPDATE collection SET whole = 0 WHERE id = ?'),
      holes: prepare(
        db,
        `UPDATE collection SET holes = 1
         WHERE scope = ?1 AND id IN (
           SELECT collection FROM member
           WHERE namespace = ?2 AND name = ?3 AND version = ?4 AND body = ?5)`,
      ),
      member: prepare(
        db,
        `SELECT body, namespace, name, uid, version, size FROM member
         WHERE collection = ? AND namespace = ? AND name = ?`,
      ),
      setMember: prepare(
        db,
        `INSERT INTO member (collection, namespace, name, body, uid, version, size)
         VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET body = excluded.body, uid = excluded.uid,
           version = excluded.version, size = excluded.size`,
      ),
      displaced: prepare(
        db,
        `SELECT member.body, member.namespace, member.name, member.uid, member.version, member.size
         FROM staged CROSS JOIN member ON member.collection = ?3
           AND member.namespace = staged.namespace AND member.name = staged.name
         WHERE staged.scope = ?1 AND staged.replacement = ?2 AND member.body <> staged.body`,
      ),
      setMembers: prepare(
        db,
        `INSERT INTO member (collection, namespace, name, body, uid, version, size)
         SELECT ?3, namespace, name, body, uid, version, size FROM staged
         WHERE scope = ?1 AND replacement = ?2 ORDER BY namespace, name
         ON CONFLICT DO UPDATE SET body = excluded.body, uid = excluded.uid,
           version = excluded.version, size = excluded.size
         WHERE body <> excluded.body`,
      ),
      changes: prepare(db, 'SELECT changes()'),
      removeMember: prepare(
        db,
        'DELETE FROM member WHERE collection = ? AND namespace = ? AND name = ?',
      ),
      single: prepare(
        db,
        `SELECT body, namespace, name, uid, version, size FROM single
         WHERE scope = ? AND namespace = ? AND name = ?`,
      ),
      setSingle: prepare(
        db,
        `INSERT INTO single (scope, namespace, name, body, uid, version, size,
           kind_group, kind_version, kind, confirmed_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET body = excluded.body, uid = excluded.uid,
           version = excluded.version, size = excluded.size, kind_group = excluded.kind_group,
           kind_version = excluded.kind_version, kind = excluded.kind,
           confirmed_at = excluded.confirmed_at`,
      ),
      confirmSingle: prepare(
        db,
        'UPDATE single SET confirmed_at = ? WHERE scope = ? AND namespace = ? AND name = ?',
      ),
      moveSingle: prepare(
        db,
        `UPDATE single SET body = ?, uid = ?, version = ?, size = ?, confirmed_at = ?
         WHERE scope = ? AND namespace = ? AND name = ?`,
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
        `INSERT INTO forgotten (scope, namespace, name, below) VALUES (?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET below = excluded.below`,
      ),
      forgotten: prepare(
        db,
        'SELECT below FROM forgotten WHERE scope = ? AND namespace = ? AND name = ?',
      ),
      recall: prepare(db, 'DELETE FROM forgotten WHERE scope = ? AND namespace = ? AND name = ?'),
      recallOutdated: prepare(db, "DELETE FROM forgotten WHERE scope = ? AND below <> ''"),
      recallMembers: prepare(
        db,
        `DELETE FROM forgotten WHERE scope = ?1
           AND (below = '' OR CAST(below AS INTEGER) <= CAST(?3 AS INTEGER))
           AND EXISTS (
             SELECT 1 FROM member WHERE collection = ?2
               AND member.namespace = forgotten.namespace AND member.name = forgotten.name)`,
      ),
      stage: prepare(
        db,
        `INSERT INTO staged (scope, namespace, name, replacement, body, uid, version, size)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET body = excluded.body, uid = excluded.uid,
           version = excluded.version, size = excluded.size`,
      ),
      stagedOne: prepare(
        db,
        `SELECT body, namespace, name, uid, version, size FROM staged
         WHERE scope = ? AND namespace = ? AND name = ? AND replacement = ?`,
      ),
      staged: prepare(
        db,
        `SELECT body, namespace, name, uid, version, size FROM staged
         WHERE scope = ? AND replacement = ? ORDER BY namespace, name`,
      ),
      unstageOne: prepare(
        db,
        `DELETE FROM staged WHERE scope = ? AND namespace = ? AND name = ? AND replacement = ?
         RETURNING body, namespace, name, uid, version, size`,
      ),
      unstage: prepare(db, 'DELETE FROM staged WHERE scope = ? AND replacement = ?'),
      ...ofDamaged(db),
      setDocument: prepare(
        db,
        `INSERT INTO document (identity, url, accept, content_type, checksum, body, confirmed_at)
         VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET content_type = excluded.content_type, checksum = excluded.checksum,
           body = excluded.body, confirmed_at = excluded.confirmed_at`,
      ),
    }
  }

  /** The transaction that ran did nothing. */
  rolledBack(): void {
    this.#rings.forget()
  }

  get isNearFull(): boolean {
    return this.#eviction.isNear
  }

  evict(): Step {
    return this.#eviction.step()
  }

  carryOut(operation: Exclude<Operation, Evict>): Displaced | undefined {
    switch (operation.kind) {
      case 'stage':
        return this.#stage(operation)
      case 'flip':
        return this.#flip(operation)
      case 'discard':
        return this.#discard(operation)
      case 'apply':
        return this.#apply(operation)
      case 'put':
        return this.#put(operation)
      case 'forget':
        return this.#forget(operation)
      case 'document':
        return this.#document(operation)
      case 'quarantine':
        return this.#quarantine(operation)
      case 'disown': {
        const collection = this.#collection(operation.collection)
        if (collection) {
          this.#sql.disown.run(collection.id)
          this.#rings.restart(collection, collection.version)
        }
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
      case 'trial':
        this.#objects.leave(operation.bytes)
        return undefined
      case 'asked':
        this.#eviction.asked(operation.scope, operation.passing)
        return undefined
    }
  }

  #stage({ collection, replacement, objects }: Stage): undefined {
    const scope = this.#objects.scope(collection.scope)
    for (const object of unpack(objects)) {
      const { namespace, name } = object
      const before = toHeld(this.#sql.stagedOne.get(scope, namespace, name, replacement))
      const { id, uid, resourceVersion, size } = this.#objects.acquire(collection.scope, object)
      this.#sql.stage.run(scope, namespace, name, replacement, id, uid, resourceVersion, size)
      if (before && before.id !== id) this.#objects.release(scope, before)
    }
  }

  /** What staged rows refer to passes to members, so that bodies are not written again. */
  #flip(flip: Flip): undefined {
    const { scope, namespace, labelSelector, fieldSelector } = flip.collection
    const { group, version, kind } = flip.gvk
    const scopeId = this.#objects.scope(scope)
    const before = this.#collection(flip.collection)
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
      headChecksum(flip.collection, flip.version),
    )
    const id = Number(row?.[0])
    let changed = false
    for (const [of, name] of flip.removed) {
      const held = this.#member(id, of, name)
      changed = this.#removeMember(scopeId, id, of, name) || changed
      this.#removeSingle(scopeId, of, name, flip.listed)
      if (held && isSelective(flip.collection) && isAtLeast(flip.listed, held.resourceVersion)) {
        this.#outdate(scopeId, of, name, following(held.resourceVersion))
      }
      this.#recallUnheld(scopeId, of, name)
    }
    changed = this.#join(scopeId, id, flip) || changed
    this.#sql.recallMembers.run(scopeId, id, flip.version)
    // A restored cluster counts again from where it was: what was out of date before may be the truth.
    if (before && isNewer(before.version, flip.version)) this.#sql.recallOutdated.run(scopeId)
    if (changed || flip.afresh || !before?.whole || !isAtLeast(flip.version, before.version)) {
      this.#rings.restart({ id, scope: scopeId }, flip.version)
    } else if (flip.version !== before.version) {
      this.#rings.unchanged(before, flip.version)
    }
  }

  /** What was staged becomes members, all at once: row by row, others would wait several times as long. Returns whether any is another. */
  #join(scope: number, collection: number, { replacement, overtaken }: Flip): boolean {
    const late = overtaken.flatMap(([namespace, name]) =>
      this.#sql.unstageOne.all(scope, namespace, name, replacement),
    )
    const displaced = this.#sql.displaced.all(scope, replacement, collection)
    this.#sql.setMembers.run(scope, replacement, collection)
    const changed = Number(this.#sql.changes.get()?.[0]) > 0
    this.#sql.unstage.run(scope, replacement)
    for (const row of [...late, ...displaced]) this.#objects.release(scope, heldOf(row))
    return changed
  }

  #discard({ collection, replacement }: Discard): undefined {
    const scope = this.#objects.knownScope(collection.scope)
    if (scope === undefined) return
    for (const held of this.#unstage(scope, replacement)) this.#objects.release(scope, held)
  }

  /** What was staged. From now on nobody refers to it. */
  #unstage(scope: number, replacement: number): readonly Held[] {
    const staged = this.#sql.staged.all(scope, replacement).map(heldOf)
    this.#sql.unstage.run(scope, replacement)
    return staged
  }

  #apply(apply: Apply): Displaced | undefined {
    const { scope } = apply.collection
    const found = apply.whole ? this.#collection(apply.collection) : undefined
    const collection = found?.whole && !isNewer(apply.since, found.version) ? found : undefined
    const positions: number[] = []
    const previous: ApiObject[] = []
    const damaged: Damaged[] = []
    let told = collection?.version ?? ''
    let ordered = true
    unpack(apply.objects).forEach((object, position) => {
      const member = collection && this.#member(collection.id, object.namespace, object.name)
      if (member && apply.previous) {
        const held = this.#objects.read(scope, member)
        if (held) {
          positions.push(position)
          previous.push(held)
        } else {
          const { id, namespace, name, resourceVersion } = member
          damaged.push({ id, namespace, name, resourceVersion })
        }
      }
      const late = collection && isPast(object.resourceVersion, collection.version)
      const joined = late ? undefined : collection
      const type = apply.types[position] ?? 'MODIFIED'
      const held = joined && this.#objects.acquire(scope, object)
      if (joined && held) {
        ordered &&= isNewer(object.resourceVersion, told)
        told = object.resourceVersion
        this.#rings.add(joined, type, held, member, apply.confirmedAt)
      }
      if (type === 'DELETED') this.#deleted(apply, joined?.id, member, object)
      else this.#changed(apply, held, joined?.id, member, object)
    })
    if (collection) {
      const version = newest(collection.version, apply.version)
      const checksum = headChecksum(apply.collection, version)
      this.#sql.confirm.run(version, apply.confirmedAt, checksum, collection.id)
      if (!ordered) this.#rings.restart(collection, version)
      else if (told !== collection.version) this.#rings.added(collection, apply.confirmedAt)
    }
    return apply.previous ? { positions, objects: pack(previous), damaged } : undefined
  }

  #deleted(
    { collection: of }: Apply,
    collection: number | undefined,
    member: Held | undefined,
    { namespace, name, resourceVersion }: ApiObject,
  ): void {
    const scopeId = this.#objects.scope(of.scope)
    if (collection !== undefined && member && mayFollow(resourceVersion, member.resourceVersion)) {
      this.#removeMember(scopeId, collection, namespace, name)
    }
    this.#removeSingle(scopeId, namespace, name, resourceVersion)
    if (isSelective(of)) this.#outdate(scopeId, namespace, name, resourceVersion)
    this.#recallUnheld(scopeId, namespace, name)
  }

  #changed(
    { collection: { scope }, confirmedAt }: Apply,
    acquired: Held | undefined,
    collection: number | undefined,
    member: Held | undefined,
    object: ApiObject,
  ): void {
    const { namespace, name } = object
    const scopeId = this.#objects.scope(scope)
    const single = this.#single(scopeId, namespace, name)
    const joins = collection !== undefined && (!member || isChange(object, member))
    if (joins || member?.resourceVersion === object.resourceVersion) {
      this.#recall(scopeId, object)
    }
    const moves = single !== undefined && isChange(object, single)
    if (!joins && !moves) return
    const held = acquired ?? this.#objects.acquire(scope, object)
    if (joins) this.#setMember(scopeId, collection, held)
    if (moves) {
      const { id, uid, resourceVersion, size } = held
      this.#sql.moveSingle.run(
        id,
        uid,
        resourceVersion,
        size,
        confirmedAt,
        scopeId,
        namespace,
        name,
      )
      this.#objects.release(scopeId, single)
    }
  }

  #put({ scope, gvk, objects, confirmedAt }: Put): undefined {
    const scopeId = this.#objects.scope(scope)
    for (const object of unpack(objects)) {
      const { namespace, name } = object
      const single = this.#single(scopeId, namespace, name)
      if (single && !isChange(object, single)) {
        // Told again as it is held, unless what is held is newer.
        if (mayFollow(object.resourceVersion, single.resourceVersion)) {
          this.#sql.confirmSingle.run(confirmedAt, scopeId, namespace, name)
        }
        continue
      }
      const { id, uid, resourceVersion, size } = this.#objects.acquire(scope, object)
      const { group, version, kind } = gvk
      this.#sql.setSingle.run(
        scopeId,
        namespace,
        name,
        id,
        uid,
        resourceVersion,
        size,
        group,
        version,
        kind,
        confirmedAt,
      )
      this.#recall(scopeId, object)
      if (single) this.#objects.release(scopeId, single)
    }
  }

  /** Members stay, as the list is still what the cloud gave at its version; that they are not to be answered by name is noted. */
  #forget({ scope, namespace, name }: Forget): undefined {
    const scopeId = this.#objects.knownScope(scope)
    if (scopeId === undefined) return
    this.#removeSingle(scopeId, namespace, name)
    if (this.#sql.held.get(scopeId, namespace, name)) {
      this.#sql.setForgotten.run(scopeId, namespace, name, '')
    }
  }

  #document({ key, contentType, body, confirmedAt }: PutDocument): undefined {
    this.#sql.setDocument.run(...key, contentType, crc32(body), body, confirmedAt)
  }

  /** Nothing, if the row of the body has been left to another object meanwhile. */
  #quarantine({ scope, object }: Quarantine): undefined {
    const scopeId = this.#objects.knownScope(scope)
    if (scopeId === undefined) return
    const { id, namespace, name, resourceVersion } = object
    const where = [scopeId, namespace, name, resourceVersion, id] as const
    this.#sql.holes.run(...where)
    this.#rings.quarantine(...where)
    const { forgetMembers, forgetSingles, forgetStaged } = this.#sql
    const rows = [forgetMembers, forgetSingles, forgetStaged].map((sql) => sql.all(...where).length)
    if (rows.some((count) => count > 0)) this.#objects.remove(id)
  }

  #collection(address: CollectionAddress): (Ringed & { readonly whole: boolean }) | undefined {
    const { scope, namespace, labelSelector, fieldSelector } = address
    const scopeId = this.#objects.scope(scope)
    const row = this.#sql.collection.get(scopeId, namespace, labelSelector, fieldSelector)
    if (!row) return undefined
    const version = String(row[1])
    const whole = row[2] === 1 && isHeadWhole(row[3], address, version)
    return { id: Number(row[0]), scope: scopeId, version, whole }
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
    if (!single || (upTo !== undefined && !mayFollow(upTo, single.resourceVersion))) return
    this.#sql.removeSingle.run(scope, namespace, name)
    this.#objects.release(scope, single)
  }

  /** The cloud has told it again, unless that is older than what is known to be out of date. */
  #recall(scope: number, { namespace, name, resourceVersion }: ApiObject): void {
    const below = this.#sql.forgotten.get(scope, namespace, name)?.[0]
    if (below === undefined || isNewer(String(below), resourceVersion)) return
    this.#sql.recall.run(scope, namespace, name)
  }

  /**
   * A selector showed the object no longer: it is gone, or only does not match any more. Either way what other collections hold of it from
   * before that is not its state.
   */
  #outdate(scope: number, namespace: string, name: string, below: string): void {
    if (resourceVersion(below) === undefined || !this.#sql.held.get(scope, namespace, name)) return
    const known = this.#sql.forgotten.get(scope, namespace, name)?.[0]
    if (known !== undefined && !isNewer(below, String(known))) return
    this.#sql.setForgotten.run(scope, namespace, name, below)
  }

  /** What no collection holds any more needs no note that it is gone. */
  #recallUnheld(scope: number, namespace: string, name: string): void {
    if (!this.#sql.forgotten.get(scope, namespace, name)) return
    if (!this.#sql.held.get(scope, namespace, name)) this.#sql.recall.run(scope, namespace, name)
  }

  /** Returns whether it is another than before. */
  #setMember(scope: number, collection: number, held: Held): boolean {
    const { id, namespace, name, uid, resourceVersion, size } = held
    const before = this.#member(collection, namespace, name)
    if (before?.id === id) return false
    this.#sql.setMember.run(collection, namespace, name, id, uid, resourceVersion, size)
    if (before) this.#objects.release(scope, before)
    return true
  }

  /** Returns whether it was there. */
  #removeMember(scope: number, collection: number, namespace: string, name: string): boolean {
    const member = this.#member(collection, namespace, name)
    if (!member) return false
    this.#sql.removeMember.run(collection, namespace, name)
    this.#objects.release(scope, member)
    return true
  }
}

/** Whether an object may leave a collection without being deleted. Names and namespaces do not change. */
const isSelective = ({ labelSelector, fieldSelector }: CollectionAddress): boolean =>
  labelSelector !== '' || !/^(metadata\.name(space)?=[^,]*(,|$))*$/.test(fieldSelector)

/** What forgets a damaged object: scope, namespace, name, version and body. */
const ofDamaged = (
  db: DatabaseSync,
): Record<'forgetMembers' | 'forgetSingles' | 'forgetStaged', Statement> => {
  const named = 'namespace = ?2 AND name = ?3 AND version = ?4 AND body = ?5 RETURNING 1'
  return {
    forgetMembers: prepare(
      db,
      `DELETE FROM member
       WHERE collection IN (SELECT id FROM collection WHERE scope = ?1) AND ${named}`,
    ),
    forgetSingles: prepare(db, `DELETE FROM single WHERE scope = ?1 AND ${named}`),
    forgetStaged: prepare(db, `DELETE FROM staged WHERE scope = ?1 AND ${named}`),
  }
}

const heldOf = ([body, namespace, name, uid, version, size]: Row): Held => ({
  id: Number(body),
  namespace: String(namespace),
  name: String(name),
  uid: String(uid),
  resourceVersion: String(version),
  size: Number(size),
})

const toHeld = (row: Row | undefined): Held | undefined => row && heldOf(row)

/** Neither what is held already nor older. */
const isChange = ({ resourceVersion, uid }: ApiObject, held: Held): boolean =>
  mayFollow(resourceVersion, held.resourceVersion) &&
  (resourceVersion === '' || resourceVersion !== held.resourceVersion || uid !== held.uid)
