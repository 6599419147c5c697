import t from 'tap'
import { clusterManifests } from '../../../src/cluster/install/manifests.ts'
import type { Installation } from '../../../src/cluster/install/installation.ts'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { valueAt, listAt, objectAt, textAt } from '../../../src/api/kube/json-at.ts'

const installation: Installation = {
  name: 'nodehub-cluster',
  namespace: 'nodehub-system',
  image: 'nodehub:1',
  podHostNetwork: false,
}

/** The texts of a list. */
const textsAt = (value: Json | undefined, name: string): string =>
  listAt(value, name)
    .map((each) => textAt(each))
    .join()

/** As they are applied. */
const printed = (more: Partial<Installation> = {}): JsonObject[] =>
  JSON.parse(JSON.stringify(clusterManifests({ ...installation, ...more }))) as JsonObject[]

function one(kind: string, name = 'nodehub-cluster', more: Partial<Installation> = {}): JsonObject {
  const found = printed(more).filter(
    (each) => each['kind'] === kind && textAt(each, 'metadata', 'name') === name,
  )
  if (found[0] === undefined) throw new Error(`there is no ${kind} ${name}`)
  return found[0]
}

const listed = (more: Partial<Installation> = {}): string[] =>
  printed(more).map((each) => {
    const [kind, namespace, name] = [
      textAt(each, 'kind'),
      textAt(each, 'metadata', 'namespace'),
      textAt(each, 'metadata', 'name'),
    ]
    return namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
  })

const everywhere = [
  'Namespace nodehub-system',
  'ServiceAccount nodehub-system/nodehub-cluster',
  'ClusterRole nodehub-cluster',
  'ClusterRoleBinding nodehub-cluster',
  'Role nodehub-system/nodehub-cluster',
  'RoleBinding nodehub-system/nodehub-cluster',
  'Role default/nodehub-cluster',
  'RoleBinding default/nodehub-cluster',
  'CustomResourceDefinition nodepools.apps.openyurt.io',
  'Service nodehub-system/nodehub-cluster',
  'PodDisruptionBudget nodehub-system/nodehub-cluster',
  'NetworkPolicy nodehub-system/nodehub-cluster',
  'Deployment nodehub-system/nodehub-cluster',
  'ValidatingAdmissionPolicy nodehub-nodes',
  'ValidatingAdmissionPolicyBinding nodehub-nodes',
]

void t.test('manifests are printed in an order in which they apply', async (t) => {
  t.strictSame(listed(), [
    ...everywhere,
    'MutatingWebhookConfiguration nodehub-cluster',
    'ValidatingWebhookConfiguration nodehub-cluster',
  ])
  t.notOk(listed({ namespace: 'kube-system' }).some((each) => each.startsWith('Namespace ')))
  for (const mode of ['enforce', 'audit', 'warn'])
    t.equal(
      textAt(
        one('Namespace', 'nodehub-system'),
        'metadata',
        'labels',
        `pod-security.kubernetes.io/${mode}`,
      ),
      'restricted',
    )
})

void t.test('one policy keeps nodes in their pools, evaluated for each pool', async (t) => {
  const { spec } = one('ValidatingAdmissionPolicy', 'nodehub-nodes') as { spec: JsonObject }
  t.equal(textAt(spec, 'failurePolicy'), 'Ignore', 'as long as there is no such definition')
  t.match(spec, {
    paramKind: { apiVersion: 'apps.openyurt.io/v1beta2', kind: 'NodePool' },
    matchConstraints: {
      resourceRules: [{ operations: ['UPDATE'], resources: ['nodes', 'nodes/status'] }],
    },
    matchConditions: [{ name: 'concerns-its-pool' }, { name: 'is-not-our-own' }],
  })
  t.strictSame(one('ValidatingAdmissionPolicyBinding', 'nodehub-nodes')['spec'], {
    policyName: 'nodehub-nodes',
    paramRef: { selector: {}, parameterNotFoundAction: 'Allow' },
    validationActions: ['Deny'],
  })
})

void t.test('each webhook has its rules, conditions and failurePolicy', async (t) => {
  const webhooks = ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'].flatMap(
    (kind) =>
      listAt(one(kind), 'webhooks').map((each) => [
        textAt(each, 'name'),
        textAt(each, 'failurePolicy'),
        listAt(each, 'rules')
          .map(
            (rule) =>
              `${textsAt(rule, 'operations')} ${textsAt(rule, 'apiGroups')}/${textsAt(rule, 'resources')} ${textAt(rule, 'scope')}`,
          )
          .join('; '),
        listAt(each, 'matchConditions')
          .map((condition) => textAt(condition, 'name'))
          .join(),
        textAt(each, 'clientConfig', 'service', 'path'),
        valueAt(each, 'timeoutSeconds'),
        textAt(each, 'sideEffects'),
      ]),
  )
  const nodes = 'concerns-its-pool,is-not-our-own'
  t.strictSame(webhooks, [
    [
      'defaults.nodepools.apps.openyurt.io',
      'Fail',
      'CREATE,UPDATE apps.openyurt.io/nodepools Cluster',
      'lacks-something',
      '/mutate/nodepools',
      5,
      'None',
    ],
    [
      'defaults.nodes.apps.openyurt.io',
      'Ignore',
      'CREATE /nodes Cluster; UPDATE /nodes,nodes/status Cluster',
      nodes,
      '/mutate/nodes',
      5,
      'None',
    ],
    [
      'defaults.pods.apps.openyurt.io',
      'Ignore',
      'CREATE /pods Namespaced',
      'is-no-mirror-pod,is-no-part-of-the-cluster',
      '/mutate/pods',
      5,
      'None',
    ],
    [
      'rules.nodepools.apps.openyurt.io',
      'Fail',
      'CREATE,UPDATE,DELETE apps.openyurt.io/nodepools Cluster',
      'is-not-our-own',
      '/validate/nodepools',
      5,
      'None',
    ],
    [
      'rules.nodes.apps.openyurt.io',
      'Ignore',
      'UPDATE /nodes,nodes/status Cluster',
      nodes,
      '/validate/nodes',
      5,
      'None',
    ],
    [
      'warnings.workloads.apps.openyurt.io',
      'Ignore',
      'CREATE,UPDATE apps/deployments,daemonsets,statefulsets Namespaced; CREATE,UPDATE batch/jobs,cronjobs Namespaced',
      'is-no-part-of-the-cluster,has-no-owner,is-new-or-changed',
      '/validate/workloads',
      5,
      'None',
    ],
  ])
})

void t.test('webhooks exclude the namespace of the controller', async (t) => {
  const selector = {
    matchExpressions: [
      { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['nodehub-system'] },
    ],
  }
  for (const [kind, name] of [
    ['MutatingWebhookConfiguration', 'defaults.pods.apps.openyurt.io'],
    ['ValidatingWebhookConfiguration', 'warnings.workloads.apps.openyurt.io'],
  ] as const) {
    const found = listAt(one(kind), 'webhooks').find((each) => textAt(each, 'name') === name)
    t.strictSame(valueAt(found ?? null, 'namespaceSelector'), selector)
  }
})

/** The expressions of a webhook's conditions by their names. */
const conditionsOf = (kind: string, name: string, more: Partial<Installation> = {}) =>
  Object.fromEntries(
    listAt(
      listAt(one(kind, 'nodehub-cluster', more), 'webhooks').find(
        (each) => textAt(each, 'name') === name,
      ) ?? null,
      'matchConditions',
    ).map((each) => [textAt(each, 'name'), textAt(each, 'expression')]),
  )

const labelChanges = (name: string): string =>
  `(object.metadata.?labels[?"${name}"].orValue("") != oldObject.metadata.?labels[?"${name}"].orValue(""))`

void t.test('match conditions select pool changes, except the controller’s own', async (t) => {
  const memory =
    'object.metadata.?annotations[?"nodepool.openyurt.io/previous-attributes"].orValue("")'
  t.strictSame(
    conditionsOf('ValidatingWebhookConfiguration', 'rules.nodes.apps.openyurt.io', {
      controllers: ['admin'],
    }),
    {
      'concerns-its-pool': `(request.operation == "CREATE") || (${[
        labelChanges('apps.openyurt.io/nodepool'),
        labelChanges('apps.openyurt.io/desired-nodepool'),
        labelChanges('nodepool.openyurt.io/hostnetwork'),
        labelChanges('openyurt.io/is-edge-worker'),
        `(${memory} != ${memory.replace('object', 'oldObject')})`,
      ].join(' || ')})`,
      'is-not-our-own':
        '!(request.userInfo.username in ["system:serviceaccount:nodehub-system:nodehub-cluster", "admin"])',
    },
  )
  t.strictSame(conditionsOf('MutatingWebhookConfiguration', 'defaults.pods.apps.openyurt.io'), {
    'is-no-mirror-pod':
      '!("kubernetes.io/config.mirror" in object.metadata.?annotations.orValue({}))',
    'is-no-part-of-the-cluster':
      '(request.namespace != "kube-system") || (object.metadata.?annotations[?"apps.openyurt.io/exclude-host-network-pool"].orValue("") == "true")',
  })
  t.strictSame(
    conditionsOf('MutatingWebhookConfiguration', 'defaults.nodepools.apps.openyurt.io'),
    {
      'lacks-something':
        '(request.operation == "CREATE") || (request.requestKind.version != "v1beta2")',
    },
  )
  t.strictSame(
    conditionsOf('ValidatingWebhookConfiguration', 'warnings.workloads.apps.openyurt.io'),
    {
      'is-no-part-of-the-cluster': 'request.namespace != "kube-system"',
      'has-no-owner':
        '!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))',
      'is-new-or-changed':
        '(request.operation == "CREATE") || (object.metadata.?generation != oldObject.metadata.?generation)',
    },
  )
})

/** `group/resource[names]: verbs`. */
const rights = (role: JsonObject): string[] =>
  listAt(role, 'rules').map((rule) => {
    const names = textsAt(rule, 'resourceNames')
    return `${textsAt(rule, 'apiGroups')}/${textsAt(rule, 'resources')}${names && `[${names}]`}: ${textsAt(rule, 'verbs').replaceAll(',', ' ')}`
  })

void t.test('RBAC grants the rights that it needs', async (t) => {
  const webhooks = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'].map(
    (kind) => `admissionregistration.k8s.io/${kind}`,
  )
  const definition = 'apiextensions.k8s.io/customresourcedefinitions'
  t.strictSame(rights(one('ClusterRole')), [
    'certificates.k8s.io/certificatesigningrequests: get list watch',
    'certificates.k8s.io/certificatesigningrequests/approval: patch',
    'certificates.k8s.io/signers[kubernetes.io/kubelet-serving]: approve',
    'apps.openyurt.io/nodepools: get list watch patch',
    'apps.openyurt.io/nodepools/status: patch',
    '/nodes: get list watch patch',
    '/pods: list',
    '/namespaces: get',
    'apps/deployments: list',
    `${webhooks[0]}[nodehub-cluster]: get list watch patch`,
    `${webhooks[0]}[yurt-manager-mutating-webhook-configuration]: get`,
    `${webhooks[1]}[nodehub-cluster]: get list watch patch`,
    `${webhooks[1]}[yurt-manager-validating-webhook-configuration]: get`,
    `${definition}[nodepools.apps.openyurt.io]: get list watch patch`,
    `${definition}/status[nodepools.apps.openyurt.io]: patch`,
  ])
  const roles = printed().filter(({ kind }) => kind === 'Role')
  t.strictSame(
    roles.map((role) => [textAt(role, 'metadata', 'namespace'), rights(role)]),
    [
      [
        'nodehub-system',
        [
          'coordination.k8s.io/leases: create',
          'coordination.k8s.io/leases[nodehub-cluster]: get update patch',
          '/secrets: create',
          '/secrets[nodehub-cluster-certificates]: get list watch patch',
        ],
      ],
      ['default', ['/events: create get patch', '/services[kubernetes]: get']],
    ],
  )
  for (const binding of printed().filter(({ kind }) => textAt(kind).endsWith('RoleBinding')))
    t.strictSame(
      [binding['roleRef'], binding['subjects']],
      [
        {
          apiGroup: 'rbac.authorization.k8s.io',
          kind: textAt(binding, 'kind').replace('Binding', ''),
          name: 'nodehub-cluster',
        },
        [{ kind: 'ServiceAccount', name: 'nodehub-cluster', namespace: 'nodehub-system' }],
      ],
    )
})

void t.test('the CRD’s own rules keep a pool’s kind immutable', async (t) => {
  const versions = listAt(
    one('CustomResourceDefinition', 'nodepools.apps.openyurt.io'),
    'spec',
    'versions',
  )
  const rules = versions.map((version) => [
    textAt(version, 'name'),
    valueAt(version, 'storage'),
    listAt(version, 'schema', 'openAPIV3Schema', 'x-kubernetes-validations').map((rule) => [
      textAt(rule, 'fieldPath'),
      textAt(rule, 'rule'),
      valueAt(rule, 'optionalOldSelf') === true,
    ]),
  ])
  const type = (self: string): string =>
    `(has(${self}.spec) && has(${self}.spec.type) ? ${self}.spec.type : 'Edge')`
  const flag = (self: string, field: string): string =>
    `(has(${self}.spec) && has(${self}.spec.${field}) && ${self}.spec.${field})`
  const keepsType = ['.spec.type', `${type('self')} == ${type('oldSelf')}`, false]
  const keeps = (field: string): Json => [
    `.spec.${field}`,
    `${flag('self', field)} == ${flag('oldSelf', field)}`,
    false,
  ]
  const edgeOnly = [
    '.spec.hostNetwork',
    `oldSelf.hasValue() || !(${type('self')} == 'Cloud' && ${flag('self', 'hostNetwork')})`,
    true,
  ]
  t.strictSame(rules, [
    ['v1alpha1', false, [keepsType]],
    ['v1beta1', false, [keepsType, keeps('hostNetwork'), edgeOnly]],
    ['v1beta2', true, [keepsType, keeps('hostNetwork'), edgeOnly, keeps('interConnectivity')]],
  ])
})

void t.test('a PDB keeps one of two replicas on drain', async (t) => {
  const { spec } = one('PodDisruptionBudget')
  t.strictSame(spec, {
    minAvailable: 1,
    selector: {
      matchLabels: {
        'app.kubernetes.io/name': 'nodehub',
        'app.kubernetes.io/component': 'nodehub-cluster',
      },
    },
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
  })
  const deployment = one('Deployment')
  t.equal(valueAt(deployment, 'spec', 'replicas'), 2)
  t.strictSame(valueAt(deployment, 'spec', 'strategy'), {
    type: 'RollingUpdate',
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
  })
})

void t.test('pods run as non-root, with no capabilities', async (t) => {
  const pod = objectAt(one('Deployment'), 'spec', 'template', 'spec')
  t.strictSame(pod['securityContext'], {
    runAsNonRoot: true,
    runAsUser: 65_532,
    runAsGroup: 65_532,
    seccompProfile: { type: 'RuntimeDefault' },
  })
  const [container = null, ...others] = listAt(pod, 'containers')
  t.equal(others.length, 0)
  t.strictSame(valueAt(container, 'securityContext'), {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  t.strictSame(valueAt(container, 'resources', 'limits'), { memory: '1Gi' })
  t.strictSame(valueAt(container, 'args'), ['cluster', '--webhook-service=nodehub-cluster'])
})

void t.test('the NetworkPolicy admits the given CIDRs to each port', async (t) => {
  const port = (port: number) => ({ ports: [{ protocol: 'TCP', port }] })
  const of = (more: Partial<Installation>): Json =>
    valueAt(one('NetworkPolicy', 'nodehub-cluster', more), 'spec', 'ingress') ?? null
  t.strictSame(of({}), [port(10_283), port(10_287)], 'every source by default')
  t.strictSame(of({ apiServerCidrs: ['10.0.0.1/32', 'fd00::/64'], opsCidrs: ['10.244.0.0/16'] }), [
    {
      from: [{ ipBlock: { cidr: '10.0.0.1/32' } }, { ipBlock: { cidr: 'fd00::/64' } }],
      ...port(10_283),
    },
    { from: [{ ipBlock: { cidr: '10.244.0.0/16' } }], ...port(10_287) },
  ])
})

void t.test('authorities of API servers come from a ConfigMap', async (t) => {
  const pod = objectAt(
    one('Deployment', 'nodehub-cluster', { clientCa: 'api-server-client-ca' }),
    'spec',
    'template',
    'spec',
  )
  t.match(pod, {
    containers: [
      {
        args: [
          'cluster',
          '--webhook-service=nodehub-cluster',
          '--client-ca=/etc/nodehub/client-ca/ca.crt',
        ],
        volumeMounts: [{ name: 'client-ca', mountPath: '/etc/nodehub/client-ca', readOnly: true }],
      },
    ],
    volumes: [{ name: 'client-ca', configMap: { name: 'api-server-client-ca' } }],
  })
})
