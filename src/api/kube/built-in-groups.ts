import type { GVR } from './gvk.ts'

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
