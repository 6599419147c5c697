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

/** An object, what its rule says of it, if anything, and where other pools are known, or none. */
type Tried = readonly [object: string, said?: string | readonly string[], context?: Context]

const cases: Readonly<Record<string, Readonly<Record<string, Tried>>>> = {
  'no-pod-network': {
    'a pod that asks for a host-network pool and not for its network': [
      pod(inPool('hn')),
      'error spec',
    ],
    'a pod that goes anywhere may land there': [pod(listening), 'warning spec'],
    'one on the host network may': [pod(`${inPool('hn')}, hostNetwork: true, ${listening}`)],
    'one for a standard pool does not': [pod(inPool('std'))],
    'one with the annotation does not': [pod('', excluded('"true"'))],
    'nor one with the affinity': [pod(notIn('nodepool.openyurt.io/hostnetwork'))],
    'nor does one whose taint it does not tolerate': [pod(inPool('tainted'))],
    'where it tolerates the taint it does': [
      pod(`${inPool('tainted')}, tolerations: [{ key: edge, operator: Exists }]`),
      'error spec',
    ],
    'of a template it is said where the template stands': [
      `{ kind: CronJob, metadata: { name: x }, spec: { jobTemplate: { spec: { template: { spec: { ${inPool('hn')} } } } } } }`,
      'error spec.jobTemplate.spec.template.spec',
    ],
    'and of that of a YurtAppSet': [
      `{ kind: YurtAppSet, metadata: { name: x }, spec: { workload: { workloadTemplate: { deploymentTemplate: { spec: { template: { spec: { ${inPool('hn')} } } } } } } } }`,
      'error spec.workload.workloadTemplate.deploymentTemplate.spec.template.spec',
    ],
  },
  'cluster-dns-on-host-network-pool': {
    'cluster DNS where there is none': [
      pod(`${inPool('hn')}, hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, ${listening}`),
      'error spec.dnsPolicy',
    ],
    'where it may be either': [
      pod(`hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, ${listening}`),
      'warning spec.dnsPolicy',
    ],
    'on standard nodes it is right': [
      pod(`${inPool('std')}, hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, ${listening}`),
    ],
  },
  'host-dns-on-standard-node': {
    'no policy on a standard node': [
      pod(`${inPool('std')}, hostNetwork: true, ${listening}`),
      'warning spec.hostNetwork',
    ],
    'Default is a decision': [
      pod(`${inPool('std')}, hostNetwork: true, dnsPolicy: Default, ${listening}`),
    ],
  },
  'undeclared-port': {
    'hostNetwork and no port': [
      pod(`${inPool('hn')}, hostNetwork: true, containers: [{ name: c }]`),
      'warning spec.hostNetwork',
    ],
    'a sidecar that goes on counts, an init container that ends does not': [
      pod(
        `${inPool('hn')}, hostNetwork: true, initContainers: [{ name: i, ports: [{ containerPort: 1 }] }]`,
      ),
      'warning spec.hostNetwork',
    ],
    'a sidecar': [
      pod(
        `${inPool('hn')}, hostNetwork: true, initContainers: [{ name: i, restartPolicy: Always, ports: [{ containerPort: 1 }] }]`,
      ),
    ],
  },
  'host-port-differs': {
    'hostPort beside another containerPort': [
      pod(
        `${inPool('hn')}, hostNetwork: true, containers: [{ name: c, ports: [{ containerPort: 8080, hostPort: 8081 }] }]`,
      ),
      'error spec.containers.0.ports.0.hostPort',
    ],
    'without hostNetwork it is mapped': [
      pod(
        `${inPool('std')}, containers: [{ name: c, ports: [{ containerPort: 8080, hostPort: 8081 }] }]`,
      ),
    ],
  },
  'same-port-twice': {
    'two containers on one port': [
      pod(
        `${inPool('hn')}, hostNetwork: true, containers: [{ name: c, ports: [{ containerPort: 8080 }] }, { name: d, ports: [{ containerPort: 8080 }] }]`,
      ),
      'error spec.containers.1.ports.0.containerPort',
    ],
    'in two protocols they do not meet': [
      pod(
        `${inPool('hn')}, hostNetwork: true, containers: [{ name: c, ports: [{ containerPort: 8080 }, { containerPort: 8080, protocol: UDP }] }]`,
      ),
    ],
  },
  'reserved-port': {
    ...Object.fromEntries(
      [6443, 9890, 9099, 10250, 10256, 30000, 32767].map((port): [string, Tried] => [
        `port ${port}`,
        [
          pod(
            `${inPool('hn')}, hostNetwork: true, containers: [{ name: c, ports: [{ containerPort: ${port} }] }]`,
          ),
          'error spec.containers.0.ports.0.containerPort',
        ],
      ]),
    ),
    ...Object.fromEntries(
      [22, 53, 80, 443].map((port): [string, Tried] => [
        `port ${port} is usual`,
        [
          pod(
            `${inPool('hn')}, containers: [{ name: c, ports: [{ containerPort: 8080, hostPort: ${port} }] }], hostNetwork: false, ${notIn('nodepool.openyurt.io/hostnetwork')}`,
          ),
          'warning spec.containers.0.ports.0.hostPort',
        ],
      ]),
    ),
    'a port of a pod with a network of its own is its own': [
      pod(
        `${inPool('std')}, containers: [{ name: c, ports: [{ containerPort: 10250 }, { containerPort: 29999 }] }]`,
      ),
    ],
    'the components themselves have them': [
      pod(
        `${inPool('hn')}, hostNetwork: true, containers: [{ name: c, ports: [{ containerPort: 10256 }] }]`,
        'name: p, namespace: kube-system',
      ),
    ],
  },
  'more-pods-than-nodes': {
    'three pods of a port for two nodes': [deployment('replicas: 3'), 'error spec.replicas'],
    'a Job in parallel': [
      `{ kind: Job, metadata: { name: x }, spec: { parallelism: 3, template: { spec: { ${inPool('hn')}, hostNetwork: true, ${listening} } } } }`,
      'error spec.parallelism',
    ],
    'one pod for two nodes': [deployment('replicas: 1')],
  },
  'rollout-stalls': {
    'as many pods as nodes, and none may be missing': [
      deployment('replicas: 2'),
      'warning spec.replicas',
    ],
    'one may be missing': [
      deployment('replicas: 2, strategy: { rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } }'),
    ],
    'half a pod is none': [
      deployment('replicas: 2, strategy: { rollingUpdate: { maxUnavailable: 49% } }'),
      'warning spec.strategy',
    ],
    'all go first': [deployment('replicas: 2, strategy: { type: Recreate }')],
  },
  'pod-security-level': {
    'a namespace that enforces baseline': [
      pod(`${inPool('hn')}, hostNetwork: true, ${listening}`, 'name: p, namespace: strict'),
      'error spec.hostNetwork',
    ],
    'refuses a hostPort, too': [
      pod(
        `${inPool('std')}, containers: [{ name: c, ports: [{ containerPort: 8080, hostPort: 8080 }] }]`,
        'name: p, namespace: strict',
      ),
      'error spec.containers',
    ],
    'one that warns': [
      pod(`${inPool('hn')}, hostNetwork: true, ${listening}`, 'name: p, namespace: warning'),
      'warning spec.hostNetwork',
    ],
    'a pod with a network of its own': [
      pod(`${inPool('std')}, ${listening}`, 'name: p, namespace: strict'),
    ],
  },
  'exclude-annotation': {
    ...Object.fromEntries(
      ['"True"', '"yes"', '""', '"1"'].map((value): [string, Tried] => [
        `the value ${value}`,
        [
          pod(inPool('std'), excluded(value)),
          'error metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
        ],
      ]),
    ),
    'no text': [
      pod(inPool('std'), excluded('true')),
      'error metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
    ],
    'saying false': [
      pod(inPool('std'), excluded('"false"')),
      'warning metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
    ],
    'beside hostNetwork': [
      pod(
        `${inPool('std')}, hostNetwork: true, dnsPolicy: Default, ${listening}`,
        excluded('"true"'),
      ),
      'warning metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
    ],
    'on what makes the pods': [
      `{ kind: DaemonSet, metadata: { ${excluded('"true"')} }, spec: { template: { spec: { ${inPool('std')} } } } }`,
      'error metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
    ],
    'on both': [
      `{ kind: DaemonSet, metadata: { ${excluded('"true"')} }, spec: { template: { metadata: { ${excluded('"true"')} }, spec: { ${notIn('nodepool.openyurt.io/hostnetwork')} } } } }`,
    ],
  },
  'never-scheduled': {
    'kept off the one pool it asks for': [
      pod(inPool('hn'), excluded('"true"')),
      'error metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
    ],
    'it may go elsewhere': [pod(inPool('std'), excluded('"true"'))],
  },
  'excluded-daemonset': {
    'a pod for each host-network node is made in vain': [
      daemonSet('', excluded('"true"')),
      'warning spec.template.metadata.annotations.apps.openyurt.io/exclude-host-network-pool',
    ],
    'the template itself keeps off': [
      daemonSet(notIn('nodepool.openyurt.io/hostnetwork'), excluded('"true"')),
    ],
    'it is for a standard pool': [daemonSet(inPool('std'), excluded('"true"'))],
    'there are no host-network pools': [
      daemonSet('', excluded('"true"')),
      [],
      contextOf(pools.slice(2)),
    ],
    'no pool is known: only noted': [
      daemonSet('', excluded('"true"')),
      ['note spec.template.metadata.annotations.apps.openyurt.io/exclude-host-network-pool'],
      contextOf([]),
    ],
  },
  'cloud-host-network': {
    'type Cloud': [nodePool('{ type: Cloud, hostNetwork: true }'), 'error spec.type'],
    'without hostNetwork': [nodePool('{ type: Cloud }')],
    'type Edge': [nodePool('{ type: Edge, hostNetwork: true }')],
  },
  'pool-version': {
    v1beta1: [nodePool('{ type: Edge, hostNetwork: true }', 'v1beta1'), 'warning apiVersion'],
    v1alpha1: [nodePool('{ type: Edge, hostNetwork: true }', 'v1alpha1'), 'error apiVersion'],
    'without the field': [nodePool('{ type: Edge }', 'v1alpha1')],
  },
  'host-network-not-boolean': {
    'in quotes': [nodePool('{ type: Edge, hostNetwork: "true" }'), 'error spec.hostNetwork'],
  },
  'old-label': {
    'in an affinity alone, without a kind': [
      `{ ${notIn('nodepool.openyurt.io/host-network')} }`,
      'error affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.0.matchExpressions.0.key',
    ],
    'as what a pod asks for': [
      pod('nodeSelector: { nodepool.openyurt.io/network-mode: node-network-mode }').replace(
        'spec: {',
        `spec: { ${notIn('nodepool.openyurt.io/hostnetwork')},`,
      ),
      'error spec.nodeSelector.nodepool.openyurt.io/network-mode',
    ],
    'in a flag': [
      '{ kind: KubeletFlags, variables: { KUBELET_KUBEADM_ARGS: ["--node-labels=a=b,nodepool.openyurt.io/host-network=true"] } }',
      'error variables.KUBELET_KUBEADM_ARGS.0',
    ],
    'the right one, and one that only begins so': [
      `{ kind: Node, metadata: { labels: { nodepool.openyurt.io/hostnetwork: "true", nodepool.openyurt.io/host-networking: x } } }`,
    ],
  },
  'old-field': {
    networkMode: [nodePool('{ type: Edge, networkMode: HostNetwork }'), 'error spec.networkMode'],
  },
  'old-filter': {
    'podhostnetwork as a disabled filter': [
      '{ kind: ConfigMap, metadata: { name: yurt-hub-cfg }, data: { podhostnetwork: kubelet } }',
      'warning data.podhostnetwork',
    ],
  },
  'pool-wished-by-label': {
    'a pool wished by a label': [
      pod(inPool('std'), 'name: p, labels: { nodepool.openyurt.io/desired-nodepool: hn }'),
      'note metadata.labels.nodepool.openyurt.io/desired-nodepool',
    ],
  },
  'affinity-value-not-text': {
    'true without quotes': [
      `{ ${notIn('nodepool.openyurt.io/hostnetwork', '[true]')} }`,
      'error affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.0.matchExpressions.0.values.0',
    ],
  },
  'affinity-matches-nothing': {
    'an empty term': [
      '{ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{}] } } } }',
      'warning affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.0',
    ],
    'a term with fields alone': [
      '{ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [{ key: metadata.name, operator: In, values: [n] }] }] } } } }',
    ],
  },
  'kubelet-flags': {
    'flags that are no more': [
      '{ kind: KubeletFlags, variables: { KUBELET_KUBEADM_ARGS: ["--network-plugin=cni", "--cni-conf-dir=/etc/cni/net.d", "--v=2"] } }',
      ['error variables.KUBELET_KUBEADM_ARGS.0', 'error variables.KUBELET_KUBEADM_ARGS.1'],
    ],
    'a typographic dash': [
      '{ kind: KubeletFlags, variables: { KUBELET_EXTRA_ARGS: ["—v=2"] } }',
      'error variables.KUBELET_EXTRA_ARGS.0',
    ],
    'in kubeadm’s configuration, as a mapping': [
      '{ kind: JoinConfiguration, nodeRegistration: { kubeletExtraArgs: { network-plugin: cni } } }',
      'error nodeRegistration.kubeletExtraArgs.network-plugin',
    ],
    'and as a list': [
      '{ kind: InitConfiguration, nodeRegistration: { kubeletExtraArgs: [{ name: cni-bin-dir, value: x }] } }',
      'error nodeRegistration.kubeletExtraArgs.0',
    ],
  },
  'loopback-only': {
    'the loopback plugin alone': ['{ cniVersion: 0.3.0, name: lo, type: loopback }', 'note type'],
    'beside another': [
      '{ cniVersion: 0.4.0, name: n, plugins: [{ type: bridge }, { type: loopback }] }',
    ],
  },
  'unknown-pool': {
    'a pool that is not known': [
      pod(inPool('other')),
      'note spec.nodeSelector.apps.openyurt.io/nodepool',
    ],
  },
}

function deployment(spec: string): string {
  return `{ kind: Deployment, metadata: { name: x }, spec: { ${spec}, template: { spec: { ${inPool('hn')}, hostNetwork: true, ${listening} } } } }`
}

function nodePool(spec: string, version = 'v1beta2'): string {
  return `{ kind: NodePool, apiVersion: apps.openyurt.io/${version}, metadata: { name: new }, spec: ${spec} }`
}

for (const [rule, tried] of Object.entries(cases)) {
  void t.test(rule, async (t) => {
    for (const [what, [object, expected = [], context]] of Object.entries(tried)) {
      const each = [expected].flat().map((said) => `${rule} ${said}`)
      t.strictSame(said(object, context), each, what)
    }
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
