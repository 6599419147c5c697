/** In what kubelets differ that read and write the same, by their release. */
export interface Release {
  readonly minor: number
  /** Informers begin with a watch (client-go's WatchListClient: on from 1.35). */
  readonly watchList: boolean
}

export const release = (minor: number, watchList = minor >= 35): Release => ({ minor, watchList })

/** Services that kube-proxy does not handle are left out from 1.31 on. */
export const servicesQuery = ({ minor }: Release): Record<string, string> =>
  minor >= 31 ? { fieldSelector: 'spec.clusterIP!=None' } : {}

/**
 * From 1.31 on the status of the node is compared with what the informer holds, and before with
 * what a get has just told.
 */
export const getsNodeForStatus = ({ minor }: Release): boolean => minor <= 30

/** The version of `resource.k8s.io` that a kubelet reads ResourceClaims in. */
export function claimsVersion({ minor }: Release): string {
  if (minor >= 34) return 'v1'
  if (minor >= 32) return 'v1beta1'
  return minor === 31 ? 'v1alpha3' : 'v1alpha2'
}

/**
 * What CSINode says of plugins in the tree that have moved out of it; another release, another
 * list.
 */
export const migratedPlugins = ({ minor }: Release): string =>
  minor >= 31 ? 'kubernetes.io/cinder,kubernetes.io/portworx-volume' : 'kubernetes.io/cinder'
