import { latest } from '../../../base/clock.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { isSelective } from '../../../api/kube/selectors.ts'
import {
  nameKey,
  textInScope,
  textOfScope,
  type CollectionAddress,
  type ScopeKey,
} from './address.ts'
import type { Body } from './body.ts'
import { heldOf, isChange, type Held, type HeldDocument } from './held.ts'
import type * as records from './record.ts'
import { Collection, entryBytes, Scope } from './scope.ts'
import { isSealed } from './seal.ts'
import { restoreScope } from './snapshot.ts'
import * as tombstones from './tombstones.ts'
import { isAtLeast, isPast, mayFollow, newest } from './versions.ts'

export const documentKey = (of: records.DocumentMark): string => JSON.stringify(of)

/**
 * All that is stored, but for bodies. `apply` is the only function that changes it, when a record
 * has been written and when it is read at the next start.
 */
export class State {
  readonly scopes = new Map<string, Scope>()
  readonly documents = new Map<string, HeldDocument>()
  /** Of the next body. */
  nextSerial = 1

  scope(key: ScopeKey): Scope | undefined {
    return this.scopes.get(textOfScope(key))
  }

  collection(address: CollectionAddress): Collection | undefined {
    return this.scope(address.scope)?.collections.get(textInScope(address))
  }

  *collections(): Iterable<Collection> {
    for (const { collections } of this.scopes.values()) yield* collections.values()
  }

  get weight(): number {
    return this.weightOf()
  }

  /** Bytes of what is stored, or of what is stored for one identity alone; roughly. */
  weightOf(identity?: string): number {
    let weight = 0
    for (const scope of this.scopes.values())
      weight += identity === undefined ? scope.weight : scope.weightOf(identity)
    for (const { document, body } of this.documents.values())
      if (identity === undefined || document[0] === identity) weight += body.length + entryBytes
    return weight
  }

  /**
   * Changes the state as the record says; `bodies` are those that it refers to, in its order.
   * Returns the previous state of each object of events, where a collection had one.
   */
  apply(record: records.LogRecord, bodies: readonly Body[]): readonly (Held | undefined)[] {
    for (const { serial } of bodies) this.nextSerial = Math.max(this.nextSerial, serial + 1)
    switch (record.kind) {
      case 'apply':
        return this.#events(record, bodies)
      case 'list':
        this.#list(record, bodies)
        break
      case 'put':
        this.#put(record, bodies)
        break
      case 'forget':
        this.#forget(record)
        break
      case 'document':
        this.#document(record, bodies[0])
        break
      case 'grant':
        this.scope(record.scope)?.holders(record.to)?.add(record.holder)
        break
      case 'evict':
        this.#evict(record)
        break
      case 'drop':
        this.drop((key) => record.of === 'all' || isSealed(key), record.of === 'all')
        break
      case 'scope':
        this.drop((key) => textOfScope(key) === textOfScope(record.scope), false)
        this.scopes.set(textOfScope(record.scope), restoreScope(record, bodies))
        break
      case 'documents':
        this.#dropDocuments()
        for (const [at, [document, mediaType, confirmedAt]] of record.documents.entries())
          this.#document({ document, mediaType, confirmedAt }, bodies[at])
        break
      case 'bodies':
        break
    }
    return []
  }

  /** Removes scopes, and all documents. */
  drop(isDropped: (scope: ScopeKey) => boolean, documents: boolean): void {
    for (const [text, scope] of this.scopes) {
      if (!isDropped(scope.key)) continue
      scope.clear()
      this.scopes.delete(text)
    }
    if (documents) this.#dropDocuments()
  }

  #dropDocuments(which: Iterable<string> = this.documents.keys()): void {
    for (const key of which) {
      this.documents.get(key)?.body.release()
      this.documents.delete(key)
    }
  }

  #begun(key: ScopeKey): Scope {
    const scope = this.scope(key) ?? new Scope(key)
    this.scopes.set(textOfScope(key), scope)
    return scope
  }

  #events(of: records.ApplyRecord, bodies: readonly Body[]): readonly (Held | undefined)[] {
    const scope = this.scope(of.collection.scope)
    const found = scope?.collections.get(textInScope(of.collection))
    const isFollowed = found !== undefined && !isNewer(of.since, found.version)
    const collection = isFollowed ? found : undefined
    const displaced: (Held | undefined)[] = []
    const before = collection?.version ?? ''
    for (const [at, type] of of.types.entries()) {
      const [mark, body] = [of.objects[at], bodies[at]]
      if (!mark || !body) continue
      const held = heldOf(mark, body)
      const key = nameKey(held)
      const member = collection?.members.get(key)
      // An event that is not newer came before, of a faster watch.
      const takes = collection !== undefined && !isPast(held.version, before)
      displaced.push(takes ? member : undefined)
      if (takes) collection.changedAt = newest(collection.changedAt, held.version)
      const isDeleted = type === 'DELETED'
      if (!scope) continue
      const into = takes ? collection : undefined
      if (isDeleted) deleted(scope, of.collection, held, into)
      else changed(scope, held, into, member, of.confirmedAt)
    }
    if (collection) {
      const version = newest(before, of.version)
      // Older events do not tell whether it is still the newest.
      if (version === of.version) {
        collection.version = version
        collection.confirmedAt = of.confirmedAt
        collection.seenAt = latest(collection.seenAt, of.confirmedAt)
      }
    }
    return displaced
  }

  #list(of: records.ListRecord, bodies: readonly Body[]): void {
    const { collection: address, version } = of
    const scope = this.#begun(address.scope)
    const text = textInScope(address)
    const collection = scope.collections.get(text) ?? new Collection(address)
    scope.collections.set(text, collection)
    for (const [namespace, name] of of.removed) {
      const key = nameKey({ namespace, name })
      const member = collection.members.get(key)
      collection.remove(key)
      if (isSelective(address)) unselectRecord(scope, key, version, collection)
      else removeRecord(scope, key, version)
      if (member && isSelective(address) && isAtLeast(version, member.version))
        tombstones.unselect(scope, key, (held) => isAtLeast(member.version, held.version))
      tombstones.unhold(scope, key)
    }
    for (const [at, mark] of of.objects.entries()) {
      const body = bodies[at]
      if (body) collection.set(heldOf(mark, body))
    }
    tombstones.listed(scope, collection)
    collection.gvk = of.gvk
    if (of.removed.length + of.objects.length > 0 || collection.changedAt === '')
      collection.changedAt = version
    collection.version = collection.listedAt = version
    collection.extra = of.extra
    if (of.holder !== undefined) collection.holders.add(of.holder)
    collection.confirmedAt = collection.seenAt = of.confirmedAt
    for (const key of scope.records.keys()) raise(scope, key, collection)
    // It lost its base to a damaged record.
    if (collection.members.size !== of.size) this.#evictCollection(address)
  }

  #put(of: records.PutRecord, [body]: readonly Body[]): void {
    if (!body) return
    const scope = this.#begun(of.scope)
    const held = heldOf(of.object, body)
    const key = nameKey(held)
    const record = scope.records.get(key)
    if (!record || isChange(held, record.held)) {
      scope.setRecord({ held, gvk: of.gvk, confirmedAt: of.confirmedAt })
    } else if (mayFollow(held.version, record.held.version)) record.confirmedAt = of.confirmedAt
    for (const each of scope.collections.values()) raise(scope, key, each)
    if (of.holder !== undefined) scope.holders(key)?.add(of.holder)
  }

  /**
   * Members stay: the list is still what an API server sent at its version. A tombstone keeps them
   * from being found by name.
   */
  #forget({ scope: of, object: [namespace, name] }: records.ForgetRecord): void {
    const scope = this.scope(of)
    if (!scope) return
    const key = nameKey({ namespace, name })
    scope.removeRecord(key)
    tombstones.contradict(scope, key)
  }

  /** What refers to the body of an object. */
  referringTo(of: ScopeKey, body: Body): records.EvictRecord {
    const scope = this.scope(of)
    const isOf = (held: Held): boolean => held.body === body
    const collections = [...(scope?.collections.values() ?? [])]
      .filter(({ members }) => members.values().some(isOf))
      .map(({ address }) => address)
    const objects = [...(scope?.records.values() ?? [])]
      .filter(({ held }) => isOf(held))
      .map(({ held: { namespace, name } }) => [of, namespace, name] as const)
    return { kind: 'evict', collections, objects, documents: [] }
  }

  #document(of: Omit<HeldDocument, 'body'>, body: Body | undefined): void {
    if (!body) return
    const { document, mediaType, confirmedAt } = of
    const key = documentKey(document)
    this.documents.get(key)?.body.release()
    this.documents.set(key, { document, mediaType, confirmedAt, body: body.hold() })
  }

  #evict({ collections, objects, documents, withdrawn = [] }: records.EvictRecord): void {
    for (const [key, to, holders] of withdrawn) {
      const all = this.scope(key)?.holders(to)
      for (const each of all ?? []) if (each.startsWith(holders)) all?.delete(each)
    }
    for (const address of collections) this.#evictCollection(address)
    for (const [scope, namespace, name] of objects)
      this.scope(scope)?.removeRecord(nameKey({ namespace, name }))
    this.#dropDocuments(documents.map(documentKey))
    for (const [text, scope] of this.scopes) {
      scope.removeUngiven()
      for (const key of scope.tombstones) tombstones.unhold(scope, key)
      if (scope.collections.size + scope.records.size === 0) this.scopes.delete(text)
    }
  }

  #evictCollection(address: CollectionAddress): void {
    this.scope(address.scope)?.remove(textInScope(address))
  }
}

/**
 * Keeps an object's record from being older than what a collection holds, which may go while a
 * caller that has been shown it stays.
 */
function raise(scope: Scope, key: string, { members, confirmedAt }: Collection): void {
  const [record, member] = [scope.records.get(key), members.get(key)]
  if (!record || !member || scope.tombstones.has(key)) return
  if (isNewer(member.version, record.held.version))
    scope.setRecord({ held: member, gvk: record.gvk, confirmedAt })
}

/** `into`: the collection that takes the event in. */
function deleted(
  scope: Scope,
  address: CollectionAddress,
  { version, ...named }: Held,
  into: Collection | undefined,
): void {
  const key = nameKey(named)
  const member = into?.members.get(key)
  if (member && mayFollow(version, member.version)) into?.remove(key)
  if (isSelective(address)) {
    // A record of this version is of the state that the selector no longer matches.
    if (scope.records.get(key)?.held.version !== version)
      unselectRecord(scope, key, version, scope.collections.get(textInScope(address)))
    tombstones.unselect(scope, key, (held) => isNewer(version, held.version))
  } else removeRecord(scope, key, version)
  tombstones.unhold(scope, key)
}

function changed(
  scope: Scope,
  held: Held,
  into: Collection | undefined,
  member: Held | undefined,
  at: number,
): void {
  const key = nameKey(held)
  const record = scope.records.get(key)
  const joins = into !== undefined && (!member || isChange(held, member))
  if (joins || member?.version === held.version) scope.tombstones.delete(key)
  if (joins) into.set(held)
  // The kind stays.
  if (record && isChange(held, record.held))
    scope.setRecord({ held, gvk: record.gvk, confirmedAt: at })
}

/** Does nothing where the record is newer than `upTo`. */
function removeRecord(scope: Scope, key: string, upTo: string): void {
  const record = scope.records.get(key)
  if (record && mayFollow(upTo, record.held.version)) scope.removeRecord(key)
}

/**
 * The object has left a selection up to a version: its record from before is nothing any more for
 * whom the selection was given to.
 */
function unselectRecord(scope: Scope, key: string, upTo: string, of?: Collection): void {
  const record = scope.records.get(key)
  if (!record || !mayFollow(upTo, record.held.version)) return
  for (const each of of?.holders ?? []) record.holders.delete(each)
  if (record.holders.size === 0) scope.removeRecord(key)
}
