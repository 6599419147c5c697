import { qualifiedResource, type GVR } from './gvk.ts'

/** How the API server derives the text that it compares with a selector. */
export interface SelectableField {
  readonly path: readonly string[]
  /**
   * `text`: the value, empty if missing. `truth` and `number`: `false` and `0` if missing.
   * `nothing`: the server accepts the field and never fills it: it is always empty.
   */
  readonly reads: 'text' | 'truth' | 'number' | 'nothing'
  /** The path to read if the value at `path` is empty. */
  readonly otherwise?: readonly string[]
}

/** The selectable fields of a kind besides its name. */
export interface SelectableKind {
  readonly kind: string
  /**
   * Whether `metadata.namespace` is accepted. Most cluster-scoped kinds accept it, although they
   * have none.
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
 * The kinds with selectable fields of their own, by group and resource: the names are those of
 * their conversions (k8s.io/kubernetes pkg/apis, `AddFieldLabelConversionFunc`), the values those
 * of their registries (pkg/registry, `ToSelectableFields`). Each was checked with a kube-apiserver
 * 1.36.
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
 * `undefined`: the API server selects by name and namespace only, or the resource is a custom one
 * with fields in its definition.
 */
export const selectableKind = (gvr: GVR): SelectableKind | undefined =>
  kinds[qualifiedResource(gvr)]

/**
 * The text that is compared with the selector's value. `read` returns the scalar at a path,
 * `undefined` if there is none.
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
