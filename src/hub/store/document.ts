import type { GVR } from '../../api/kube/gvk.ts'
import type { Identity } from '../../api/request/identity.ts'
import type { RepresentationKey } from '../../api/request/representation.ts'
import type { ObjectKey, ObjectStore } from './store.ts'

/**
 * The resource under which discovery, OpenAPI and the version are stored: as objects without a
 * version, with their path as the name, and their media type as the uid. No path leads to it.
 */
export const documentResource: GVR = { group: '', version: '', resource: 'documents/answered' }

/** Discovery, which programs read first. OpenAPI is for people. */
export const isDiscovery = (path: string): boolean => /^\/(api|apis|version)([/?]|$)/.test(path)

/** `path` is without a query; `representation` as `documentTypesOf` returns it. */
export const documentAt = (
  identity: Identity,
  path: string,
  representation: string,
): ObjectKey => ({
  partition: { identity, representation: representation as RepresentationKey },
  gvr: documentResource,
  namespace: '',
  name: path,
})

export const putDocument = (
  store: Pick<ObjectStore, 'put'>,
  key: ObjectKey,
  mediaType: string,
  bytes: Uint8Array,
): Promise<void> => {
  const { namespace, name } = key
  const kind = { group: '', version: '', kind: '' }
  return store.put(key, kind, { namespace, name, uid: mediaType, resourceVersion: '', bytes })
}
