import type { GVR } from './gvk.ts'

// Resources that the hub requests itself or treats by name.

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

export const customResourceDefinitions: GVR = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  resource: 'customresourcedefinitions',
}

/** The version that kubelets request since 1.33, with their feature gate on. */
export const trustBundles: GVR = {
  group: 'certificates.k8s.io',
  version: 'v1beta1',
  resource: 'clustertrustbundles',
}

/** The version that kubelets request since 1.34. */
export const resourceClaims: GVR = {
  group: 'resource.k8s.io',
  version: 'v1',
  resource: 'resourceclaims',
}

/** The versions that older kubelets request, newest first. */
export const olderResourceClaimVersions = ['v1beta1', 'v1alpha3', 'v1alpha2'] as const

/** The path of a list, or of one object. For namespaced resources `''` is all namespaces. */
export function pathOf({ group, version, resource }: GVR, namespace = '', name = ''): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const scope = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  return `${root}${scope}/${resource}${name === '' ? '' : `/${encodeURIComponent(name)}`}`
}

/** The URL of a list or watch, without the parameters that are empty. */
export function collectionUrl(
  gvr: GVR,
  namespace: string | undefined,
  parameters: Readonly<Record<string, string>>,
): string {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== ''))
  return query.size === 0 ? pathOf(gvr, namespace) : `${pathOf(gvr, namespace)}?${query}`
}
