import type { GVR } from '../../api/kube/gvk.ts'
import type { ObjectStore } from './store.ts'

/** An object by its place in the API; the version of its resource does not matter. */
export interface NamedObject {
  readonly gvr: GVR
  /** Empty for what is cluster-scoped. */
  readonly namespace: string
  readonly name: string
}

/**
 * Which objects the node's pods refer to, by what a store holds at the moment: all of them, and
 * more does no harm. `undefined`: that is not known, and then nothing is taken for not needed. Does
 * not throw.
 */
export type FindReferencedObjects = (store: ObjectStore) => readonly NamedObject[] | undefined

/** `/secrets/default/password`, `resource.k8s.io/resourceclaims/default/gpu`. */
export const qualifiedName = ({ gvr, namespace, name }: NamedObject): string =>
  `${gvr.group}/${gvr.resource}/${namespace}/${name}`
