import type { DatabaseSync } from 'node:sqlite'
import { latest } from '../../../base/clock.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { isHeadWhole } from './head-checksum.ts'
import type { CollectionAddress, ScopeKey } from './address.ts'
import type { ObjectRow } from './object-row.ts'
import { prepare, type Row } from './statements.ts'

/**
 * What a whole collection says of one object: that it holds it, or, where it would have it, that it
 * has not.
 */
export interface CollectionMembership {
  readonly address: CollectionAddress
  readonly version: string
  readonly hasDamage: boolean
  readonly member: ObjectState | undefined
}

/** One version of the object that could be answered. */
export interface ObjectState {
  readonly row: ObjectRow
  readonly gvk: GVK
  /** The version up to which it is known not to have changed. */
  readonly confirmedVersion: string
  /** When that was said. */
  readonly confirmedAt: number
}

/** All that is stored about one object, but its bytes. */
export interface ObjectStates {
  readonly record: ObjectState | undefined
  /** The cloud has contradicted since what collections say of it: only its own record counts. */
  readonly forgotten: boolean
  /** States from before this version are out of date; '' for none. */
  readonly below: string
  readonly memberships: readonly CollectionMembership[]
}

/** Reads what is stored about single objects. */
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
      // Collections of other names are many where each object is watched by itself, and need no
      // look.
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
    // Members are of the kind that their list is named for; a Table stays one.
    gvk: {
      group: String(group),
      version: String(kindVersion),
      kind: String(kind).replace(/List$/, ''),
    },
    confirmedVersion,
    confirmedAt: Number(confirmedAt),
  }
}

/** When the cloud last said that the object is in this state. */
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
 * Newest first; of versions that do not compare, the one written last. Of one version, the one
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
 * What is to be answered: the newest there is, unless something later contradicts it. A collection
 * that would have the object and has it not was told at its version that there is none. `unsure`
 * tells of collections that lack what they should hold.
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
