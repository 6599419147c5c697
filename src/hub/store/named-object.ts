import type { GVR } from '../../api/kube/gvk.ts'
import type { ObjectStore } from './store.ts'

/** The resource, namespace and name of an object; the API version does not matter. */
export interface NamedObject {
  readonly gvr: GVR
  /** Empty for cluster-scoped objects. */
  readonly namespace: string
  readonly name: string
}

/**
 * Returns the objects that the node's pods refer to, by the store's present content; more does no
 * harm. `undefined`: not known; then none is evicted as unreferenced. Does not throw.
 */
export type FindReferencedObjects = (store: ObjectStore) => readonly NamedObject[] | undefined

/** `/secrets/default/password`, `resource.k8s.io/resourceclaims/default/gpu`. */
export const qualifiedName = ({ gvr, namespace, name }: NamedObject): string =>
  `${gvr.group}/${gvr.resource}/${namespace}/${name}`

/**
 * The resource under which documents are stored: as objects without a version, with their path as
 * the name, and their media type as the uid.
 */
export const documentResource: GVR = { group: '', version: '', resource: 'documents' }
