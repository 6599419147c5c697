import type { Installation } from './installation.ts'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

const rule = (
  group: string,
  resource: string,
  verbs: string,
  ...resourceNames: string[]
): Rule => ({
  apiGroups: [group],
  resources: [resource],
  ...(resourceNames.length > 0 && { resourceNames }),
  verbs: verbs.split(' '),
})

const definition = 'nodepools.apps.openyurt.io'

/**
 * Rules for the whole cluster: pools, the members of nodes that it writes, and otherwise only
 * objects that it has made.
 */
const everywhere = ({ name }: Installation): readonly Rule[] => [
  // Requests of nodes for their hubs' serving certificates.
  rule('certificates.k8s.io', 'certificatesigningrequests', 'get list watch'),
  rule('certificates.k8s.io', 'certificatesigningrequests/approval', 'patch'),
  rule('certificates.k8s.io', 'signers', 'approve', 'kubernetes.io/kubelet-serving'),
  rule('apps.openyurt.io', 'nodepools', 'get list watch patch'),
  rule('apps.openyurt.io', 'nodepools/status', 'patch'),
  rule('', 'nodes', 'get list watch patch'),
  // Whether pods on the pod network run on a node.
  rule('', 'pods', 'list'),
  // For warnings: the level of Pod Security that namespaces enforce.
  rule('', 'namespaces', 'get'),
  // Whether a yurt-manager runs beside.
  rule('apps', 'deployments', 'list'),
  ...['mutating', 'validating'].flatMap((kind) => {
    const configurations = `${kind}webhookconfigurations`
    return [
      rule('admissionregistration.k8s.io', configurations, 'get patch', name),
      // To detect a yurt-manager's webhooks.
      rule(
        'admissionregistration.k8s.io',
        configurations,
        'get',
        `yurt-manager-${kind}-webhook-configuration`,
      ),
    ]
  }),
  rule('apiextensions.k8s.io', 'customresourcedefinitions', 'get patch', definition),
]

/**
 * In its own namespace: the Lease of the leader election, and the Secret with the certificates of
 * all replicas.
 */
const atHome = ({ name }: Installation): readonly Rule[] => [
  rule('coordination.k8s.io', 'leases', 'create'),
  rule('coordination.k8s.io', 'leases', 'get update patch', name),
  rule('', 'secrets', 'create'),
  rule('', 'secrets', 'get patch', `${name}-certificates`),
]

/**
 * In the namespace `default`: events about nodes and pools, which are in no namespace, and the
 * addresses that the certificates of hubs may have.
 */
const inDefault: readonly Rule[] = [
  rule('', 'events', 'create'),
  rule('', 'services', 'get', 'kubernetes'),
]

const apiVersion = 'rbac.authorization.k8s.io/v1'

/** A role, and its binding to one subject. */
export const boundRole = (
  kind: 'ClusterRole' | 'Role',
  metadata: { readonly name: string; readonly namespace?: string },
  rules: readonly object[],
  subject: object,
): readonly object[] => [
  { apiVersion, kind, metadata, rules },
  {
    apiVersion,
    kind: `${kind}Binding`,
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: metadata.name },
    subjects: [subject],
  },
]

/** The least that the service account of the installation must be allowed, and no wildcard. */
export function roles(installation: Installation): readonly object[] {
  const { name, namespace } = installation
  const account = { kind: 'ServiceAccount', name, namespace }
  return [
    ...boundRole('ClusterRole', { name }, everywhere(installation), account),
    ...boundRole('Role', { name, namespace }, atHome(installation), account),
    ...boundRole('Role', { name, namespace: 'default' }, inDefault, account),
  ]
}
