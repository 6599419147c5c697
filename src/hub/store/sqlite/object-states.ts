import type { DatabaseSync } from 'node:sqlite'
import { latest } from '../../../base/clock.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { isHeadWhole } from './head-checksum.ts'
import type { CollectionAddress, ScopeKey } from './address.ts'
import type { ObjectRow } from './object-row.ts'
import { prepare, type Row } from './statements.ts'

/** A complete collection with respect to one object: it has it, or it would and does not. */
export interface CollectionMembership {
  readonly address: CollectionAddress
  readonly version: string
  readonly hasDamage: boolean
  readonly member: ObjectState | undefined
}

/** One stored version of the object. */
export interface ObjectState {
  readonly row: ObjectRow
  readonly gvk: GVK
  /** The version up to which it is known not to have changed. */
  readonly confirmedVersion: string
  /** When that was confirmed. */
  readonly confirmedAt: number
}

/** All stored versions of one object, without their bytes. */
export interface ObjectStates {
  readonly record: ObjectState | undefined
  /** An API server has contradicted the collections since: only the object's record counts. */
  readonly forgotten: boolean
  /** States older than this version are out of date; '' for none. */
  readonly below: string
  readonly memberships: readonly CollectionMembership[]
}

/** Reads all stored versions of an object. */
export class ObjectStatesReader {
  readonly #sql

  constructor(db: DatabaseSync) {
    this.#sql = {
      own: prepare(
        db,
        `SELECT body, uid, version, size, kind_group, kind_version, kind, confirmed_at, ''
         FROM single WHERE scope = ?1 AND namespace = ?2 AND name = ?3
         UNION ALL
         SELECT NULL, '', '', 0, '', '', '', 0, below
         FROM forgotten WHERE scope = ?1 AND namespace = ?2 AND name = ?3`,
      ),
      // Collections of single names are many where a kubelet watches object by object: they are
      // skipped.
      memberships: prepare(
        db,
        `SELECT member.body, member.uid, member.version, member.size,
           collection.kind_group, collection.kind_version, collection.kind, collection.confirmed_at,
           collection.namespace, label_selector, field_selector, collection.version, holes, checksum
         FROM collection LEFT JOIN member
           ON member.collection = collection.id AND member.namespace = ?2 AND member.name = ?3
         WHERE scope = ?1 AND collection.namespace IN ('', ?2) AND whole = 1
           AND (field_selector NOT GLOB 'metadata.name=*' OR field_selector = ?4
             OR field_selector GLOB '*,*')
           AND (member.body IS NOT NULL OR (label_selector = '' AND field_selector IN ('', ?4)))`,
      ),
    }
  }

  of(id: number, scope: ScopeKey, namespace: string, name: string): ObjectStates {
    const field = `metadata.name=${name}`
    const named = { namespace, name }
    const own = this.#sql.own.all(id, namespace, name)
    const single = own.find(([body]) => body !== null)
    const forgotten = own.find(([body]) => body === null)
    return {
      record: single && objectStateOf(single, named, String(single[2])),
      forgotten: forgotten?.[8] === '',
      below: String(forgotten?.[8] ?? ''),
      memberships: this.#sql.memberships.all(id, namespace, name, field).flatMap((row) => {
        const version = String(row[11])
        const address = {
          scope,
          namespace: String(row[8]),
          labelSelector: String(row[9]),
          fieldSelector: String(row[10]),
        }
        if (!isHeadWhole(row[13], address, version)) return []
        const member = objectStateOf(row, named, version)
        return [{ address, version, hasDamage: row[12] === 1, member }]
      }),
    }
  }
}

function objectStateOf(
  [id, uid, version, size, group, kindVersion, kind, confirmedAt]: Row,
  named: { readonly namespace: string; readonly name: string },
  confirmedVersion: string,
): ObjectState | undefined {
  if (id === null) return undefined
  return {
    row: {
      ...named,
      id: Number(id),
      uid: String(uid),
      resourceVersion: String(version),
      size: Number(size),
    },
    // Members have the kind that their list is named for; a Table stays one.
    gvk: {
      group: String(group),
      version: String(kindVersion),
      kind: String(kind).replace(/List$/, ''),
    },
    confirmedVersion,
    confirmedAt: Number(confirmedAt),
  }
}

/** When an API server last confirmed this state of the object. */
export function confirmedAtOf({ record, memberships }: ObjectStates, { row }: ObjectState): number {
  const same: number[] = []
  const add = (candidate: ObjectState | undefined): void => {
    const isSame =
      candidate?.row.resourceVersion === row.resourceVersion && candidate.row.uid === row.uid
    if (isSame) same.push(candidate.confirmedAt)
  }
  add(record)
  for (const { member } of memberships) add(member)
  return latest(...same)
}

/**
 * The newest state. Of versions that do not compare, the one written last; of one version, the one
 * confirmed last.
 */
export function newestState({ record, memberships }: ObjectStates): ObjectState | undefined {
  let newest = record
  for (const { member } of memberships) if (member && isBefore(member, newest)) newest = member
  return newest
}

function isBefore(candidate: ObjectState, other: ObjectState | undefined): boolean {
  if (!other) return true
  const [a, b] = [candidate.row, other.row]
  if (a.id === b.id) return isNewer(candidate.confirmedVersion, other.confirmedVersion)
  if (isNewer(a.resourceVersion, b.resourceVersion)) return true
  return !isNewer(b.resourceVersion, a.resourceVersion) && a.id > b.id
}

/** Without the states that are out of date. */
export function withoutOutdated(states: ObjectStates): ObjectStates {
  const { record, memberships, below } = states
  if (states.forgotten)
    return { ...states, memberships: memberships.filter(({ member }) => !member) }
  if (below === '') return states
  const isCurrent = (candidate: ObjectState | undefined): boolean =>
    candidate !== undefined && !isNewer(below, candidate.row.resourceVersion)
  return {
    ...states,
    record: isCurrent(record) ? record : undefined,
    memberships: memberships.filter(({ member }) => isCurrent(member)),
  }
}

/**
 * The state to answer with: the newest one, unless something later contradicts it. 'absent': a
 * collection that would have the object does not, at a newer version. `unsure` selects collections
 * that may lack objects they should have.
 */
export function currentState(
  states: ObjectStates,
  unsure: (holding: CollectionMembership) => boolean,
): ObjectState | 'absent' | undefined {
  const { below, forgotten, record } = states
  if (forgotten && record) return record
  const newest = newestState(withoutOutdated(states))
  const denied = states.memberships.some(
    (holding) =>
      !holding.member &&
      !unsure(holding) &&
      (newest
        ? isNewer(holding.version, newest.confirmedVersion)
        : !isNewer(below, holding.version)),
  )
  return denied ? 'absent' : newest
}
