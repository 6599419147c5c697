import type { ApiObject } from '../../../api/kube/object.ts'
import type { Body } from './body.ts'
import type { ObjectMark } from './record.ts'
import { mayFollow } from './versions.ts'

/** One stored version of an object. */
export interface Held {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly version: string
  readonly body: Body
}

export const heldOf = ([namespace, name, uid, version]: ObjectMark, body: Body): Held => ({
  namespace,
  name,
  uid,
  version,
  body,
})

export const markOf = ({ namespace, name, uid, resourceVersion }: ApiObject): ObjectMark => [
  namespace,
  name,
  uid,
  resourceVersion,
]

export const isSameVersion = (a: Held, b: Held): boolean =>
  a.version !== '' && a.version === b.version && a.uid === b.uid

/** Whether both have the same version and bytes. */
export const isSame = (a: Held, b: Held): boolean =>
  isSameVersion(a, b) && a.body.length === b.body.length && a.body.digest === b.body.digest

/**
 * Whether `next` is neither the stored state nor older. API servers of two releases may encode one
 * version of an object differently: what came last counts.
 */
export const isChange = (next: Held, stored: Held): boolean =>
  mayFollow(next.version, stored.version) && !isSame(next, stored)
