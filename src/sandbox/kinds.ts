import { apiVersionOf, type GVK, type GVR } from '../api/kube/gvk.ts'
import { selectableKind } from '../api/kube/selectable-fields.ts'

export interface Subresource {
  readonly name: string
  readonly verbs: readonly string[]
  /** Of its request and answer, where it is not the parent's. */
  readonly group?: string
  readonly version?: string
  readonly kind?: string
}

/** One resource the sandbox serves. */
export interface Kind {
  readonly gvr: GVR
  readonly kind: string
  readonly singular: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly Subresource[]
  /** Fields a field selector may name, besides metadata.name and metadata.namespace. */
  readonly fields: readonly string[]
  /** Defined by a CustomResourceDefinition: JSON only, and members sorted. */
  readonly custom: boolean
}

export const gvkOf = ({ gvr, kind }: Kind): GVK => ({
  group: gvr.group,
  version: gvr.version,
  kind,
})

export const listGvkOf = (kind: Kind): GVK => ({ ...gvkOf(kind), kind: `${kind.kind}List` })

export const apiVersionOfKind = ({ gvr }: Kind): string => apiVersionOf(gvr)

export const hasStatus = (kind: Kind): boolean =>
  kind.subresources.some(({ name }) => name === 'status')

const allVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
const statusVerbs = ['get', 'patch', 'update']

const status: Subresource = { name: 'status', verbs: statusVerbs }
type Entry = Partial<Omit<Kind, 'gvr' | 'kind' | 'custom'>>

function kind(apiVersion: string, name: string, resource: string, entry: Entry = {}): Kind {
  const [version = '', group = ''] = apiVersion.split('/').toReversed()
  const gvr = { group, version, resource }
  return {
    gvr,
    kind: name,
    singular: name.toLowerCase(),
    namespaced: false,
    verbs: allVerbs,
    shortNames: [],
    categories: [],
    subresources: [],
    fields: [...(selectableKind(gvr)?.fields.keys() ?? [])],
    custom: false,
    ...entry,
  }
}

/** A resource that only answers create, and stores nothing. */
const review = (apiVersion: string, name: string, resource: string, entry: Entry = {}): Kind =>
  kind(apiVersion, name, resource, { verbs: ['create'], ...entry })

const podSubresources: readonly Subresource[] = [
  { name: 'attach', kind: 'PodAttachOptions', verbs: ['create', 'get'] },
  { name: 'exec', kind: 'PodExecOptions', verbs: ['create', 'get'] },
  { name: 'log', verbs: ['get'] },
  { name: 'portforward', kind: 'PodPortForwardOptions', verbs: ['create', 'get'] },
  status,
]

const apps = { namespaced: true, categories: ['all'] }

export const builtinKinds: readonly Kind[] = [
  kind('v1', 'ConfigMap', 'configmaps', {
    namespaced: true,
    shortNames: ['cm'],
  }),
  kind('v1', 'Endpoints', 'endpoints', {
    namespaced: true,
    shortNames: ['ep'],
  }),
  kind('v1', 'Event', 'events', {
    namespaced: true,
    shortNames: ['ev'],
  }),
  kind('v1', 'Namespace', 'namespaces', {
    verbs: allVerbs.filter((verb) => verb !== 'deletecollection'),
    shortNames: ['ns'],
    subresources: [status],
  }),
  kind('v1', 'Node', 'nodes', {
    shortNames: ['no'],
    subresources: [status],
  }),
  kind('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims', {
    namespaced: true,
    shortNames: ['pvc'],
    subresources: [status],
  }),
  kind('v1', 'PersistentVolume', 'persistentvolumes', {
    shortNames: ['pv'],
    subresources: [status],
  }),
  kind('v1', 'Pod', 'pods', {
    namespaced: true,
    shortNames: ['po'],
    categories: ['all'],
    subresources: podSubresources,
  }),
  kind('v1', 'Secret', 'secrets', {
    namespaced: true,
  }),
  kind('v1', 'ServiceAccount', 'serviceaccounts', {
    namespaced: true,
    shortNames: ['sa'],
    subresources: [
      {
        name: 'token',
        group: 'authentication.k8s.io',
        version: 'v1',
        kind: 'TokenRequest',
        verbs: ['create'],
      },
    ],
  }),
  kind('v1', 'Service', 'services', {
    namespaced: true,
    shortNames: ['svc'],
    categories: ['all'],
    subresources: [status],
  }),
  kind('apps/v1', 'DaemonSet', 'daemonsets', {
    ...apps,
    shortNames: ['ds'],
    subresources: [status],
  }),
  kind('apps/v1', 'Deployment', 'deployments', {
    ...apps,
    shortNames: ['deploy'],
    subresources: [status],
  }),
  kind('apps/v1', 'ReplicaSet', 'replicasets', {
    ...apps,
    shortNames: ['rs'],
    subresources: [status],
  }),
  review('authentication.k8s.io/v1', 'SelfSubjectReview', 'selfsubjectreviews'),
  review('authentication.k8s.io/v1', 'TokenReview', 'tokenreviews'),
  review('authorization.k8s.io/v1', 'SelfSubjectAccessReview', 'selfsubjectaccessreviews'),
  review('authorization.k8s.io/v1', 'SubjectAccessReview', 'subjectaccessreviews'),
  kind('certificates.k8s.io/v1', 'CertificateSigningRequest', 'certificatesigningrequests', {
    shortNames: ['csr'],
    subresources: [{ name: 'approval', verbs: statusVerbs }, status],
  }),
  kind('storage.k8s.io/v1', 'CSIDriver', 'csidrivers'),
  kind('storage.k8s.io/v1', 'CSINode', 'csinodes'),
  kind('storage.k8s.io/v1', 'VolumeAttachment', 'volumeattachments', { subresources: [status] }),
  kind('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'customresourcedefinitions', {
    shortNames: ['crd', 'crds'],
    categories: ['api-extensions'],
    subresources: [status],
  }),
  kind('coordination.k8s.io/v1', 'Lease', 'leases', { namespaced: true }),
  kind('node.k8s.io/v1', 'RuntimeClass', 'runtimeclasses'),
  kind('discovery.k8s.io/v1', 'EndpointSlice', 'endpointslices', { namespaced: true }),
]

/** Custom resources answer their verbs in another order than built-in ones. */
const customVerbs = [
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'create',
  'update',
  'watch',
]

/** The resource one served version of a CustomResourceDefinition brings. */
export const customKind = (
  apiVersion: string,
  name: string,
  resource: string,
  entry: Entry & { readonly hasStatus: boolean },
): Kind => {
  const { hasStatus: withStatus, ...given } = entry
  const subresources = withStatus ? [status] : []
  return {
    ...kind(apiVersion, name, resource, given),
    verbs: customVerbs,
    subresources,
    custom: true,
  }
}
