import type { ApiObject } from '../../../api/kube/object.ts'
import type { Held } from './objects.ts'
import type { Row } from './statements.ts'
import { mayFollow } from './versions.ts'

export type Named = Pick<Held, 'namespace' | 'name'>

/**
 * As `heldOf` reads them; the same in the tables of members, of single objects and of what is
 * staged.
 */
export const heldColumns = 'body, namespace, name, uid, version, size'

export const heldOf = ([body, namespace, name, uid, version, size]: Row): Held => ({
  id: Number(body),
  namespace: String(namespace),
  name: String(name),
  uid: String(uid),
  resourceVersion: String(version),
  size: Number(size),
})

export const maybeHeld = (row: Row | undefined): Held | undefined => row && heldOf(row)

/** Whether it is neither what is held already nor older. */
export const isChange = ({ resourceVersion, uid }: ApiObject, held: Held): boolean =>
  mayFollow(resourceVersion, held.resourceVersion) &&
  (resourceVersion === '' || resourceVersion !== held.resourceVersion || uid !== held.uid)

/** A damaged object as statements have it: its scope and `?2` to `?5`, which `isDamaged` names. */
export type DamagedIn = readonly [
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
