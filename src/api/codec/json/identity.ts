import type { GVK } from '../../kube/gvk.ts'
import { parseApiVersion } from '../../kube/gvk.ts'
import type { Projection } from '../../kube/media-type.ts'
import type { ApiObject } from '../../kube/object.ts'
import { Members } from './members.ts'

interface Identity {
  namespace: string
  name: string
  uid: string
  resourceVersion: string
}

/**
 * The object whose JSON is `bytes`. In a Table, `bytes` are a row, and the identity is that of the
 * object in the row.
 */
export function apiObject(projection: Projection, bytes: Buffer): ApiObject {
  const found = { namespace: '', name: '', uid: '', resourceVersion: '' }
  if (projection === 'table') readRow(bytes, found)
  else readObject(bytes, 0, found)
  return {
    namespace: found.namespace,
    name: found.name,
    uid: found.uid,
    resourceVersion: found.resourceVersion,
    bytes,
  }
}

function readRow(bytes: Buffer, found: Identity): void {
  for (const members = new Members(bytes, 0); members.next();) {
    if (members.is('object') && members.isObject) readObject(bytes, members.valueStart, found)
  }
}

/**
 * The last of duplicated members wins. The scan ends early once all four fields are known, which
 * the API server writes first.
 */
function readObject(bytes: Buffer, at: number, found: Identity): void {
  for (const members = new Members(bytes, at); members.next();) {
    if (!members.is('metadata')) continue
    found.namespace = found.name = found.uid = found.resourceVersion = ''
    if (members.isObject && readMetadata(bytes, members.valueStart, found)) return
  }
}

function readMetadata(bytes: Buffer, at: number, found: Identity): boolean {
  for (const members = new Members(bytes, at); members.next();) {
    if (members.is('name')) found.name = members.string
    else if (members.is('namespace')) found.namespace = members.string
    else if (members.is('uid')) found.uid = members.string
    else if (members.is('resourceVersion')) found.resourceVersion = members.string
    else continue
    if (found.name && found.namespace && found.uid && found.resourceVersion) return true
  }
  return false
}

/** The kind that an object in JSON names; `undefined` if it names none. */
export function gvkIn(bytes: Buffer): GVK | undefined {
  let ownKind = ''
  let ownVersion = ''
  for (const members = new Members(bytes, 0); members.next();) {
    if (members.is('kind')) ownKind = members.string
    else if (members.is('apiVersion')) ownVersion = members.string
  }
  return ownKind && ownVersion ? { ...parseApiVersion(ownVersion), kind: ownKind } : undefined
}
