import type { ApiObject } from '../../../api/kube/object.ts'
import type { Row } from './statements.ts'
import { mayFollow } from './versions.ts'

/** One version of an object, without its bytes: a row of `member`, `single` or `staged`. */
export interface ObjectRow extends Omit<ApiObject, 'bytes'> {
  /** Row of `body`. */
  readonly id: number
  readonly size: number
}

/** Enough of a row to find its body, and other references to that. */
export type BodyReference = Omit<ObjectRow, 'uid' | 'resourceVersion'>

/** Reads namespace, name, body and size. */
export const bodyReference = ([namespace, name, body, size]: Row): BodyReference => ({
  namespace: String(namespace),
  name: String(name),
  id: Number(body),
  size: Number(size),
})

export type ObjectName = Pick<ObjectRow, 'namespace' | 'name'>

/** In the order in which `objectRow` reads them. */
export const rowColumns = 'body, namespace, name, uid, version, size'

export const objectRow = ([body, namespace, name, uid, version, size]: Row): ObjectRow => ({
  id: Number(body),
  namespace: String(namespace),
  name: String(name),
  uid: String(uid),
  resourceVersion: String(version),
  size: Number(size),
})

export const optionalObjectRow = (row: Row | undefined): ObjectRow | undefined =>
  row && objectRow(row)

/** Whether the object is neither the stored state nor older. */
export const isChange = ({ resourceVersion, uid }: ApiObject, held: ObjectRow): boolean =>
  mayFollow(resourceVersion, held.resourceVersion) &&
  (resourceVersion === '' || resourceVersion !== held.resourceVersion || uid !== held.uid)

/** The parameters of `isDamaged` for a damaged object: its scope, and `?2` to `?5`. */
export type DamagedParameters = readonly [
  scope: number,
  namespace: string,
  name: string,
  version: string,
  body: number,
]

/**
 * Matches the rows that refer to a damaged body. A row of `body` is used again: with another
 * version or name it is another object's.
 */
export const isDamaged = 'namespace = ?2 AND name = ?3 AND version = ?4 AND body = ?5'
