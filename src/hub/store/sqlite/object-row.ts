import type { ApiObject } from '../../../api/kube/object.ts'
import type { Row } from './statements.ts'
import { mayFollow } from './versions.ts'

/** One version of an object, without its bytes: a row of `member`, `single` or `staged`. */
export interface ObjectRow extends Omit<ApiObject, 'bytes'> {
  /** Row of `body`. */
  readonly id: number
  readonly size: number
}

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

/** Whether it is neither what is held already nor older. */
export const isChange = ({ resourceVersion, uid }: ApiObject, held: ObjectRow): boolean =>
  mayFollow(resourceVersion, held.resourceVersion) &&
  (resourceVersion === '' || resourceVersion !== held.resourceVersion || uid !== held.uid)

/** A damaged object as statements have it: its scope and `?2` to `?5`, which `isDamaged` names. */
export type DamagedParameters = readonly [
  scope: number,
  namespace: string,
  name: string,
  version: string,
  body: number,
]

/**
 * Of the row that refers to a damaged body. Rows of bodies are used again: then it is another
 * object's, or version's.
 */
export const isDamaged = 'namespace = ?2 AND name = ?3 AND version = ?4 AND body = ?5'
