import { qualifiedResource, type GVR } from './gvk.ts'

/** How the API server makes the text it compares with of what stands at `path`. */
export interface SelectableField {
  readonly path: readonly string[]
  /**
   * `text`: as it stands, nothing for what is not there. `truth` and `number`: of what is not there
   * `false` and `0`. `nothing`: the server takes the field and never fills it, so that it always
   * reads as empty.
   */
  readonly reads: 'text' | 'truth' | 'number' | 'nothing'
  /** Where it is read while `path` is empty. */
  readonly otherwise?: readonly string[]
}

/** What a kind can be selected by besides its name. */
export interface SelectableKind {
  readonly kind: string
  /**
   * Whether `metadata.namespace` is taken, too. Most kinds of the cluster take it, and have none.
   */
  readonly byNamespace: boolean
  readonly fields: ReadonlyMap<string, SelectableField>
}

const field = (path: string, reads: SelectableField['reads'] = 'text'): SelectableField => ({
  path: path.split('.'),
  reads,
})

const texts = (...names: readonly string[]): [string, SelectableField][] =>
  names.map((name) => [name, field(name)])

const kind = (
  name: string,
  fields: readonly (readonly [string, SelectableField])[],
  byNamespace = true,
): SelectableKind => ({ kind: name, byNamespace, fields: new Map(fields) })

const ofTheObject = [
  'kind',
  'namespace',
  'name',
  'uid',
  'apiVersion',
  'resourceVersion',
  'fieldPath',
]

/**
 * The kinds that can be selected by fields of their own, by group and resource: as their
 * conversions take the names (k8s.io/kubernetes pkg/apis, `AddFieldLabelConversionFunc`) and their
 * registries the values (pkg/registry, `ToSelectableFields`). A kube-apiserver 1.36 was asked for
 * each.
 */
const kinds: Readonly<Record<string, SelectableKind>> = {
  pods: kind('Pod', [
    ...texts(
      'spec.nodeName',
      'spec.restartPolicy',
      'spec.schedulerName',
      'spec.serviceAccountName',
      'status.phase',
      'status.podIP',
      'status.nominatedNodeName',
    ),
    ['spec.host', field('spec.nodeName')],
    ['spec.hostNetwork', field('spec.hostNetwork', 'truth')],
    ['status.podIPs', field('status.podIPs', 'nothing')],
  ]),
  nodes: kind('Node', [['spec.unschedulable', field('spec.unschedulable', 'truth')]], false),
  namespaces: kind('Namespace', texts('status.phase'), false),
  secrets: kind('Secret', texts('type')),
  services: kind('Service', texts('spec.clusterIP', 'spec.type')),
  replicationcontrollers: kind('ReplicationController', [
    ['status.replicas', field('status.replicas', 'number')],
  ]),
  events: kind('Event', [
    ...texts(...ofTheObject.map((name) => `involvedObject.${name}`)),
    ...texts('reason', 'reportingComponent', 'type'),
    ['source', { ...field('source.component'), otherwise: ['reportingComponent'] }],
  ]),
  'events.events.k8s.io': kind('Event', [
    ...texts(...ofTheObject.map((name) => `regarding.${name}`)),
    ...texts('reason', 'reportingController', 'type'),
  ]),
  'jobs.batch': kind('Job', [['status.successful', field('status.succeeded', 'number')]]),
  'certificatesigningrequests.certificates.k8s.io': kind(
    'CertificateSigningRequest',
    texts('spec.signerName'),
    false,
  ),
  'resourceslices.resource.k8s.io': kind(
    'ResourceSlice',
    texts('spec.nodeName', 'spec.driver'),
    false,
  ),
}

/**
 * `undefined`: the API server selects by name and namespace alone, or the resource is a custom one,
 * whose definition says more.
 */
export const selectableKind = (gvr: GVR): SelectableKind | undefined =>
  kinds[qualifiedResource(gvr)]

/**
 * The text that a selector's value is compared with. `read` gives the scalar at a path, `undefined`
 * where there is none.
 */
export function selectableValue(
  { path, reads, otherwise }: SelectableField,
  read: (path: readonly string[]) => string | number | boolean | undefined,
): string {
  switch (reads) {
    case 'text':
      return String(read(path) ?? '') || (otherwise ? String(read(otherwise) ?? '') : '')
    case 'truth':
      return String(read(path) ?? false)
    case 'number':
      return String(read(path) ?? 0)
    case 'nothing':
      return ''
  }
}
