import type { GVR } from './gvk.ts'

// What the hub asks for itself, or knows by name.

const core = (resource: string): GVR => ({ group: '', version: 'v1', resource })
const storage = (resource: string): GVR => ({ group: 'storage.k8s.io', version: 'v1', resource })

export const nodes = core('nodes')
export const pods = core('pods')
export const services = core('services')
export const secrets = core('secrets')
export const configMaps = core('configmaps')
export const serviceAccounts = core('serviceaccounts')
export const volumeClaims = core('persistentvolumeclaims')
export const persistentVolumes = core('persistentvolumes')
export const volumeAttachments = storage('volumeattachments')
export const csiNodes = storage('csinodes')
export const csiDrivers = storage('csidrivers')
export const runtimeClasses: GVR = {
  group: 'node.k8s.io',
  version: 'v1',
  resource: 'runtimeclasses',
}

export const endpointSlices: GVR = {
  group: 'discovery.k8s.io',
  version: 'v1',
  resource: 'endpointslices',
}

/** The version that kubelets ask for since 1.33, where they ask at all. */
export const trustBundles: GVR = {
  group: 'certificates.k8s.io',
  version: 'v1beta1',
  resource: 'clustertrustbundles',
}

/** The version that kubelets ask for since 1.34. */
export const resourceClaims: GVR = {
  group: 'resource.k8s.io',
  version: 'v1',
  resource: 'resourceclaims',
}

/** Those that older kubelets ask for, newest first. */
export const olderResourceClaimVersions = ['v1beta1', 'v1alpha3', 'v1alpha2'] as const

/**
 * The path at which all of them are listed, or one is read; of those in namespaces `''` is all of
 * them.
 */
export function pathOf({ group, version, resource }: GVR, namespace = '', name = ''): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const scope = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  return `${root}${scope}/${resource}${name === '' ? '' : `/${encodeURIComponent(name)}`}`
}
