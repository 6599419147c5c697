/** group-version-kind: the schema that an object names. The core group is the empty string. */
export interface GVK {
  readonly group: string
  readonly version: string
  readonly kind: string
}

/**
 * group-version-resource: the path of a resource in the API. The core group is the empty string.
 */
export interface GVR {
  readonly group: string
  readonly version: string
  readonly resource: string
}

export const includes = (all: readonly GVR[], { group, version, resource }: GVR): boolean =>
  all.some((each) => each.resource === resource && each.group === group && each.version === version)

/** `v1`, `apps/v1`: the `apiVersion` of objects. */
export const apiVersionOf = ({ group, version }: { group: string; version: string }): string =>
  group === '' ? version : `${group}/${version}`

/** The reverse of `apiVersionOf`. */
export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf('/')
  return slash < 0
    ? { group: '', version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) }
}

/** `pods`, `deployments.apps`: a resource in messages and in `details.kind`. */
export const qualifiedResource = ({
  group,
  resource,
}: {
  group: string
  resource: string
}): string => (group === '' ? resource : `${resource}.${group}`)

/** The API groups that the kube-apiserver itself serves, out of its own etcd. */
export const builtInGroups: ReadonlySet<string> = new Set([
  '',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
  'apps',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'autoscaling',
  'batch',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'events.k8s.io',
  'flowcontrol.apiserver.k8s.io',
  'internal.apiserver.k8s.io',
  'networking.k8s.io',
  'node.k8s.io',
  'policy',
  'rbac.authorization.k8s.io',
  'resource.k8s.io',
  'scheduling.k8s.io',
  'storage.k8s.io',
  'storagemigration.k8s.io',
])

/**
 * Whether the kube-apiserver gives the resource's objects to all callers alike. Other API servers
 * need not; and what answers a caller's own question is stored under a resource with a slash.
 */
export const isAlikeForAll = ({ group, resource }: GVR): boolean =>
  builtInGroups.has(group) && !resource.includes('/')
