import t from 'tap'
import { parse } from 'yaml'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { contextOf, identityOf, type Context } from '../../../src/node/lint/context.ts'
import { findingsIn, rules } from '../../../src/node/lint/rules.ts'

/**
 * Pools of the tests: a host-network pool of two nodes, one that is tainted, and a standard one.
 */
const pools = [
  'kind: NodePool\napiVersion: apps.openyurt.io/v1beta2\nmetadata: { name: hn }\nspec: { hostNetwork: true }\nstatus: { readyNodeNum: 1, unreadyNodeNum: 1 }',
  'kind: NodePool\napiVersion: apps.openyurt.io/v1beta2\nmetadata: { name: tainted }\nspec: { hostNetwork: true, taints: [{ key: edge, value: "1", effect: NoSchedule }] }',
  'kind: NodePool\napiVersion: apps.openyurt.io/v1beta2\nmetadata: { name: std }\nspec: { type: Edge }',
  'kind: Namespace\nmetadata: { name: strict, labels: { pod-security.kubernetes.io/enforce: baseline } }',
  'kind: Namespace\nmetadata: { name: warning, labels: { pod-security.kubernetes.io/warn: restricted } }',
].map((text) => parse(text) as JsonObject)

/**
 * What rules say of an object, each with its level and place, beside those pools and namespaces; or
 * with nothing known.
 */
function said(text: string, context = contextOf(pools)): string[] {
  const object = parse(text) as JsonObject
  return findingsIn(object, context).map(
    ({ rule, level, path }) => `${rule} ${level} ${path.join('.')}`,
  )
}

const pod = (spec: string, metadata = 'name: p'): string =>
  `{ kind: Pod, apiVersion: v1, metadata: { ${metadata} }, spec: { ${spec} } }`

const daemonSet = (spec: string, metadata: string): string =>
  `{ kind: DaemonSet, apiVersion: apps/v1, metadata: { name: d }, spec: { template: { metadata: { ${metadata} }, spec: { ${spec} } } } }`

const inPool = (name: string): string => `nodeSelector: { apps.openyurt.io/nodepool: ${name} }`
const listening = 'containers: [{ name: c, ports: [{ containerPort: 8080 }] }]'
const notIn = (key: string, values = '["true"]'): string =>
  `affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: ${key}, operator: NotIn, values: ${values} }] }] } } }`
const excluded = (value: string): string =>
  `name: p, annotations: { apps.openyurt.io/exclude-host-network-pool: ${value} }`

interface Case {
  readonly what: string
  readonly object: string
  readonly said: readonly string[]
  /** Where other pools are known, or none. */
  readonly context?: Context
}

const cases: Readonly<Record<string, readonly Case[]>> = {
  'no-pod-network': [
    {
      what: 'a pod that asks for a host-network pool and not for its network',
      object: pod(inPool('hn')),
      said: ['no-pod-network error spec'],
    },
    {
      what: 'a pod that goes anywhere may land there',
      object: pod(listening),
      said: ['no-pod-network warning spec'],
    },
    {
      what: 'one on the host network may',
      object: pod(`${inPool('hn')}, hostNetwork: true, ${listening}`),
      said: [],
    },
    { what: 'one for a standard pool does not', object: pod(inPool('std')), said: [] },
    { what: 'one with the annotation does not', object: pod('', excluded('"true"')), said: [] },
    {
      what: 'nor one with the affinity',
      object: pod(notIn('nodepool.openyurt.io/hostnetwork')),
      said: [],
    },
    {
      what: 'nor does one whose taint it does not tolerate',
      object: pod(inPool('tainted')),
      said: [],
    },
    {
      what: 'where it tolerates the taint it does',
      object: pod(`${inPool('tainted')}, tolerations: [{ key: edge, operator: Exists }]`),
      said: ['no-pod-network error spec'],
    },
    {
      what: 'of a template it is said where the template stands',
      object: `{ kind: CronJob, metadata: { name: x }, spec: { jobTemplate: { spec: { template: { spec: { ${inPool('hn')} } } } } } }`,
      said: ['no-pod-network error spec.jobTemplate.spec.template.spec'],
    },
    {
      what: 'and of that of a YurtAppSet',
      object: `{ kind: YurtAppSet, metadata: { name: x }, spec: { workload: { workloadTemplate: { deploymentTemplate: { spec: { template: { spec: { ${inPool('hn')} } } } } } } } }`,
      said: [
        'no-pod-network error spec.workload.workloadTemplate.deploymentTemplate.spec.template.spec',
      ],
    },
  ],
  'cluster-dns-on-host-network-pool': [
    {
      what: 'cluster DNS where there is none',
      object: pod(
        `${inPool('hn')}, hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, ${listening}`,
      ),
      said: ['cluster-dns-on-host-network-pool error spec.dnsPolicy'],
    },
    {
      what: 'where it may be either',
      object: pod(`hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, ${listening}`),
      said: ['cluster-dns-on-host-network-pool warning spec.dnsPolicy'],
    },
    {
      what: 'on standard nodes it is right',
      object: pod(
        `${inPool('std')}, hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, ${listening}`,
      ),
      said: [],
    },
  ],
  'host-dns-on-standard-node': [
    {
      what: 'no policy on a standard node',
      object: pod(`${inPool('std')}, hostNetwork: true, ${listening}`),
      said: ['host-dns-on-standard-node warning spec.hostNetwork'],
    },
    {
      what: 'Default is a decision',
      object: pod(`${inPool('std')}, hostNetwork: true, dnsPolicy: Default, ${listening}`),
      said: [],
    },
  ],
  'undeclared-port': [
    {
      what: 'hostNetwork and no port',
      object: pod(`${inPool('hn')}, hostNetwork: true, containers: [{ name: c }]`),
      said: ['undeclared-port warning spec.hostNetwork'],
    },
    {
      what: 'a sidecar that goes on counts, an init container that ends does not',
      object: pod(
        `${inPool('hn')}, hostNetwork: true, initContainers: [{ name: i, ports: [{ containerPort: 1 }] }]`,
      ),
      said: ['undeclared-port warning spec.hostNetwork'],
    },
    {
      what: 'a sidecar',
      object: pod(
        `${inPool('hn')}, hostNetwork: true, initContainers: [{ name: i, restartPolicy: Always, ports: [{ containerPort: 1 }] }]`,
      ),
      said: [],
    },
  ],
  'host-port-differs': [
    {
      what: 'hostPort beside another containerPort',
      object: pod(
        `${inPool('hn')}, hostNetwork: true, containers: [{ name: c, ports: [{ containerPort: 8080, hostPort: 8081 }] }]`,
      ),
      said: ['host-port-differs error spec.containers.0.ports.0.hostPort'],
    },
    {
      what: 'without hostNetwork it is mapped',
      object: pod(
        `${inPool('std')}, containers: [{ name: c, ports: [{ containerPort: 8080, hostPort: 8081 }] }]`,
      ),
      said: [],
    },
  ],
  'same-port-twice': [
    {
      what: 'two containers on one port',
      object: pod(
        `${inPool('hn')}, hostNetwork: true, containers: [{ name: c, ports: [{ containerPort: 8080 }] }, { name: d, ports: [{ containerPort: 8080 }] }]`,
      ),
      said: ['same-port-twice error spec.containers.1.ports.0.containerPort'],
    },
    {
      what: 'in two protocols they do not meet',
      object: pod(
        `${inPool('hn')}, hostNetwork: true, containers: [{ name: c, ports: [{ containerPort: 8080 }, { containerPort: 8080, protocol: UDP }] }]`,
      ),
      said: [],
    },
  ],
  'reserved-port': [
    ...[6443, 9890, 9099, 10250, 10256, 30000, 32767].map((port) => ({
      what: `port ${port}`,
      object: pod(
        `${inPool('hn')}, hostNetwork: true, containers: [{ name: c, ports: [{ containerPort: ${port} }] }]`,
      ),
      said: ['reserved-port error spec.containers.0.ports.0.containerPort'],
    })),
    ...[22, 53, 80, 443].map((port) => ({
      what: `port ${port} is usual`,
      object: pod(
        `${inPool('hn')}, containers: [{ name: c, ports: [{ containerPort: 8080, hostPort: ${port} }] }], hostNetwork: false, ${notIn('nodepool.openyurt.io/hostnetwork')}`,
      ),
      said: ['reserved-port warning spec.containers.0.ports.0.hostPort'],
    })),
    {
      what: 'a port of a pod with a network of its own is its own',
      object: pod(
        `${inPool('std')}, containers: [{ name: c, ports: [{ containerPort: 10250 }, { containerPort: 29999 }] }]`,
      ),
      said: [],
    },
    {
      what: 'the components themselves have them',
      object: pod(
        `${inPool('hn')}, hostNetwork: true, containers: [{ name: c, ports: [{ containerPort: 10256 }] }]`,
        'name: p, namespace: kube-system',
      ),
      said: [],
    },
  ],
  'more-pods-than-nodes': [
    {
      what: 'three pods of a port for two nodes',
      object: deployment('replicas: 3'),
      said: ['more-pods-than-nodes error spec.replicas'],
    },
    {
      what: 'a Job in parallel',
      object: `{ kind: Job, metadata: { name: x }, spec: { parallelism: 3, template: { spec: { ${inPool('hn')}, hostNetwork: true, ${listening} } } } }`,
      said: ['more-pods-than-nodes error spec.parallelism'],
    },
    { what: 'one pod for two nodes', object: deployment('replicas: 1'), said: [] },
  ],
  'rollout-stalls': [
    {
      what: 'as many pods as nodes, and none may be missing',
      object: deployment('replicas: 2'),
      said: ['rollout-stalls warning spec.replicas'],
    },
    {
      what: 'one may be missing',
      object: deployment(
        'replicas: 2, strategy: { rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } }',
      ),
      said: [],
    },
    {
      what: 'half a pod is none',
      object: deployment('replicas: 2, strategy: { rollingUpdate: { maxUnavailable: 49% } }'),
      said: ['rollout-stalls warning spec.strategy'],
    },
    {
      what: 'all go first',
      object: deployment('replicas: 2, strategy: { type: Recreate }'),
      said: [],
    },
  ],
  'pod-security-level': [
    {
      what: 'a namespace that enforces baseline',
      object: pod(`${inPool('hn')}, hostNetwork: true, ${listening}`, 'name: p, namespace: strict'),
      said: ['pod-security-level error spec.hostNetwork'],
    },
    {
      what: 'refuses a hostPort, too',
      object: pod(
        `${inPool('std')}, containers: [{ name: c, ports: [{ containerPort: 8080, hostPort: 8080 }] }]`,
        'name: p, namespace: strict',
      ),
      said: ['pod-security-level error spec.containers'],
    },
    {
      what: 'one that warns',
      object: pod(
        `${inPool('hn')}, hostNetwork: true, ${listening}`,
        'name: p, namespace: warning',
      ),
      said: ['pod-security-level warning spec.hostNetwork'],
    },
    {
      what: 'a pod with a network of its own',
      object: pod(`${inPool('std')}, ${listening}`, 'name: p, namespace: strict'),
      said: [],
    },
  ],
  'exclude-annotation': [
    ...['"True"', '"yes"', '""', '"1"'].map((value) => ({
      what: `the value ${value}`,
      object: pod(inPool('std'), excluded(value)),
      said: [
        'exclude-annotation error metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
      ],
    })),
    {
      what: 'no text',
      object: pod(inPool('std'), excluded('true')),
      said: [
        'exclude-annotation error metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
      ],
    },
    {
      what: 'saying false',
      object: pod(inPool('std'), excluded('"false"')),
      said: [
        'exclude-annotation warning metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
      ],
    },
    {
      what: 'beside hostNetwork',
      object: pod(
        `${inPool('std')}, hostNetwork: true, dnsPolicy: Default, ${listening}`,
        excluded('"true"'),
      ),
      said: [
        'exclude-annotation warning metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
      ],
    },
    {
      what: 'on what makes the pods',
      object: `{ kind: DaemonSet, metadata: { ${excluded('"true"')} }, spec: { template: { spec: { ${inPool('std')} } } } }`,
      said: [
        'exclude-annotation error metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
      ],
    },
    {
      what: 'on both',
      object: `{ kind: DaemonSet, metadata: { ${excluded('"true"')} }, spec: { template: { metadata: { ${excluded('"true"')} }, spec: { ${notIn('nodepool.openyurt.io/hostnetwork')} } } } }`,
      said: [],
    },
  ],
  'never-scheduled': [
    {
      what: 'kept off the one pool it asks for',
      object: pod(inPool('hn'), excluded('"true"')),
      said: [
        'never-scheduled error metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
      ],
    },
    {
      what: 'it may go elsewhere',
      object: pod(inPool('std'), excluded('"true"')),
      said: [],
    },
  ],
  'excluded-daemonset': [
    {
      what: 'a pod for each host-network node is made in vain',
      object: daemonSet('', excluded('"true"')),
      said: [
        'excluded-daemonset warning spec.template.metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
      ],
    },
    {
      what: 'the template itself keeps off',
      object: daemonSet(notIn('nodepool.openyurt.io/hostnetwork'), excluded('"true"')),
      said: [],
    },
    {
      what: 'it is for a standard pool',
      object: daemonSet(inPool('std'), excluded('"true"')),
      said: [],
    },
    {
      what: 'there are no host-network pools',
      object: daemonSet('', excluded('"true"')),
      said: [],
      context: contextOf(pools.slice(2)),
    },
    {
      what: 'no pool is known: only noted',
      object: daemonSet('', excluded('"true"')),
      said: [
        'excluded-daemonset note spec.template.metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
      ],
      context: contextOf([]),
    },
  ],
  'cloud-host-network': [
    {
      what: 'type Cloud',
      object: nodePool('{ type: Cloud, hostNetwork: true }'),
      said: ['cloud-host-network error spec.type'],
    },
    { what: 'without hostNetwork', object: nodePool('{ type: Cloud }'), said: [] },
    { what: 'type Edge', object: nodePool('{ type: Edge, hostNetwork: true }'), said: [] },
  ],
  'pool-version': [
    {
      what: 'v1beta1',
      object: nodePool('{ type: Edge, hostNetwork: true }', 'v1beta1'),
      said: ['pool-version warning apiVersion'],
    },
    {
      what: 'v1alpha1',
      object: nodePool('{ type: Edge, hostNetwork: true }', 'v1alpha1'),
      said: ['pool-version error apiVersion'],
    },
    { what: 'without the field', object: nodePool('{ type: Edge }', 'v1alpha1'), said: [] },
  ],
  'host-network-not-boolean': [
    {
      what: 'in quotes',
      object: nodePool('{ type: Edge, hostNetwork: "true" }'),
      said: ['host-network-not-boolean error spec.hostNetwork'],
    },
  ],
  'old-label': [
    {
      what: 'in an affinity alone, without a kind',
      object: `{ ${notIn('nodepool.openyurt.io/host-network')} }`,
      said: [
        'old-label error affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.0.matchExpressions.0.key',
      ],
    },
    {
      what: 'as what a pod asks for',
      object: pod('nodeSelector: { nodepool.openyurt.io/network-mode: node-network-mode }').replace(
        'spec: {',
        `spec: { ${notIn('nodepool.openyurt.io/hostnetwork')},`,
      ),
      said: ['old-label error spec.nodeSelector.nodepool.openyurt.io/network-mode'],
    },
    {
      what: 'in a flag',
      object:
        '{ kind: KubeletFlags, variables: { KUBELET_KUBEADM_ARGS: ["--node-labels=a=b,nodepool.openyurt.io/host-network=true"] } }',
      said: ['old-label error variables.KUBELET_KUBEADM_ARGS.0'],
    },
    {
      what: 'the right one, and one that only begins so',
      object: `{ kind: Node, metadata: { labels: { nodepool.openyurt.io/hostnetwork: "true", nodepool.openyurt.io/host-networking: x } } }`,
      said: [],
    },
  ],
  'old-field': [
    {
      what: 'networkMode',
      object: nodePool('{ type: Edge, networkMode: HostNetwork }'),
      said: ['old-field error spec.networkMode'],
    },
  ],
  'old-filter': [
    {
      what: 'podhostnetwork as a disabled filter',
      object:
        '{ kind: ConfigMap, metadata: { name: yurt-hub-cfg }, data: { podhostnetwork: kubelet } }',
      said: ['old-filter warning data.podhostnetwork'],
    },
  ],
  'pool-wished-by-label': [
    {
      what: 'a pool wished by a label',
      object: pod(inPool('std'), 'name: p, labels: { nodepool.openyurt.io/desired-nodepool: hn }'),
      said: ['pool-wished-by-label note metadata.labels.nodepool.openyurt.io/desired-nodepool'],
    },
  ],
  'affinity-value-not-text': [
    {
      what: 'true without quotes',
      object: `{ ${notIn('nodepool.openyurt.io/hostnetwork', '[true]')} }`,
      said: [
        'affinity-value-not-text error affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.0.matchExpressions.0.values.0',
      ],
    },
  ],
  'affinity-matches-nothing': [
    {
      what: 'an empty term',
      object:
        '{ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{}] } } } }',
      said: [
        'affinity-matches-nothing warning affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.0',
      ],
    },
    {
      what: 'a term with fields alone',
      object:
        '{ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [{ key: metadata.name, operator: In, values: [n] }] }] } } } }',
      said: [],
    },
  ],
  'kubelet-flags': [
    {
      what: 'flags that are no more',
      object:
        '{ kind: KubeletFlags, variables: { KUBELET_KUBEADM_ARGS: ["--network-plugin=cni", "--cni-conf-dir=/etc/cni/net.d", "--v=2"] } }',
      said: [
        'kubelet-flags error variables.KUBELET_KUBEADM_ARGS.0',
        'kubelet-flags error variables.KUBELET_KUBEADM_ARGS.1',
      ],
    },
    {
      what: 'a typographic dash',
      object: '{ kind: KubeletFlags, variables: { KUBELET_EXTRA_ARGS: ["—v=2"] } }',
      said: ['kubelet-flags error variables.KUBELET_EXTRA_ARGS.0'],
    },
    {
      what: 'in kubeadm’s configuration, as a mapping',
      object:
        '{ kind: JoinConfiguration, nodeRegistration: { kubeletExtraArgs: { network-plugin: cni } } }',
      said: ['kubelet-flags error nodeRegistration.kubeletExtraArgs.network-plugin'],
    },
    {
      what: 'and as a list',
      object:
        '{ kind: InitConfiguration, nodeRegistration: { kubeletExtraArgs: [{ name: cni-bin-dir, value: x }] } }',
      said: ['kubelet-flags error nodeRegistration.kubeletExtraArgs.0'],
    },
  ],
  'loopback-only': [
    {
      what: 'the loopback plugin alone',
      object: '{ cniVersion: 0.3.0, name: lo, type: loopback }',
      said: ['loopback-only note type'],
    },
    {
      what: 'beside another',
      object: '{ cniVersion: 0.4.0, name: n, plugins: [{ type: bridge }, { type: loopback }] }',
      said: [],
    },
  ],
  'unknown-pool': [
    {
      what: 'a pool that is not known',
      object: pod(inPool('other')),
      said: ['unknown-pool note spec.nodeSelector.apps.openyurt.io/nodepool'],
    },
  ],
}

function deployment(spec: string): string {
  return `{ kind: Deployment, metadata: { name: x }, spec: { ${spec}, template: { spec: { ${inPool('hn')}, hostNetwork: true, ${listening} } } } }`
}

function nodePool(spec: string, version = 'v1beta2'): string {
  return `{ kind: NodePool, apiVersion: apps.openyurt.io/${version}, metadata: { name: new }, spec: ${spec} }`
}

for (const [rule, tried] of Object.entries(cases)) {
  void t.test(rule, async (t) => {
    for (const { what, object, said: expected, context } of tried)
      t.strictSame(said(object, context), expected, what)
  })
}

void t.test('hostNetwork is immutable', async (t) => {
  const was = parse(pod(`${inPool('hn')}, ${listening}`)) as JsonObject
  const before = new Map([[identityOf(was) ?? '', was]])
  const now = pod(`${inPool('hn')}, hostNetwork: true, ${listening}`)
  t.strictSame(said(now, { ...contextOf(pools), before }), [
    'host-network-changed error spec.hostNetwork',
  ])
  t.strictSame(said(now.replace('name: p', 'name: q'), { ...contextOf(pools), before }), [])
  const pool = parse(nodePool('{ type: Edge }')) as JsonObject
  const pooled = { ...contextOf(pools), before: new Map([[identityOf(pool) ?? '', pool]]) }
  t.strictSame(said(nodePool('{ type: Edge, hostNetwork: true }'), pooled), [
    'host-network-changed error spec.hostNetwork',
  ])
})

void t.test('every rule has a test, a reason and a page', async (t) => {
  const tried = new Set([...Object.keys(cases), 'host-network-changed'])
  for (const { id, reason, document, title } of rules) {
    t.ok(tried.has(id), id)
    t.match(document, /^https:\/\//, id)
    t.match(reason, /\.$/, id)
    t.notMatch(title, /\.$/, id)
  }
  t.equal(new Set(rules.map(({ id }) => id)).size, rules.length)
})

void t.test('without known pools, rules that depend on pools are silent', async (t) => {
  const nothing = { pools: new Map(), namespaces: new Map() }
  t.strictSame(said(pod(listening), nothing), [])
  t.strictSame(said(pod(`${inPool('hn')}, hostNetwork: true, ${listening}`), nothing), [
    'unknown-pool note spec.nodeSelector.apps.openyurt.io/nodepool',
  ])
})
