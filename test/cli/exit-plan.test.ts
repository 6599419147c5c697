import t, { type Test } from 'tap'
import { exitPlan } from '../../src/cli/exit-plan.ts'
import type { GVR } from '../../src/api/kube/gvk.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt, withAt } from '../../src/api/kube/json-at.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../src/api/kube/node-pool.ts'
import type { ExitPlanConfig } from '../../src/config/cluster-config.ts'
import { nodes, pods } from '../kit/cloud.ts'
import { customResources } from '../kit/admission-kinds.ts'
import type { RequestMatch } from '../../src/sandbox/faults.ts'
import { startTestCluster, type TestCluster } from '../kit/cluster-api.ts'

t.setTimeout(300_000)

const apps = (resource: string): GVR => ({ group: 'apps', version: 'v1', resource })
const deployments = apps('deployments')
const daemonSets = apps('daemonsets')
const replicaSets = apps('replicasets')
const namespaces: GVR = { group: '', version: 'v1', resource: 'namespaces' }

/** Answers of its controller that count as settled. */
const settled = {
  observedGeneration: 1000,
  replicas: 2,
  updatedReplicas: 2,
  availableReplicas: 2,
  desiredNumberScheduled: 2,
  updatedNumberScheduled: 2,
  numberAvailable: 2,
}

interface Plan {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function plan(
  { api, kubeconfig }: Pick<TestCluster, 'api' | 'kubeconfig'>,
  rest: Partial<ExitPlanConfig> = {},
): Promise<Plan> {
  let [out, err] = ['', '']
  const config: ExitPlanConfig = {
    access: { kind: 'kubeconfig', file: kubeconfig },
    namespace: 'kube-system',
    qps: 1000,
    burst: 1000,
    apply: false,
    mixed: 'ask',
    keepOff: [],
    only: [],
    includeManaged: false,
    recreate: false,
    settleMs: 20_000,
    output: 'table',
    ...rest,
  }
  const terminal = {
    out: (text: string) => void (out += text),
    err: (text: string) => void (err += text),
  }
  const code = await exitPlan(api, config, terminal)
  return { code, out, err }
}

/** Two nodes of a host-network pool and one of none, and a namespace. */
async function edgeCluster(t: Test): Promise<TestCluster> {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  const edge = { [hostNetworkLabel]: 'true', [nodePoolLabel]: 'kiosks' }
  for (const [name, labels] of [
    ['edge-1', edge],
    ['edge-2', edge],
    ['cloud-1', {}],
  ] as const) {
    const node = sandbox.create(nodes, { metadata: { name, labels } })
    // As once they are ready.
    sandbox.update(nodes, withAt(node, ['spec', 'taints'], undefined))
  }
  sandbox.create(namespaces, { metadata: { name: 'shop' } })
  return cluster
}

const container = { name: 'main', image: 'web', ports: [{ containerPort: 8080, protocol: 'TCP' }] }

const templateOf = (name: string, spec: JsonObject = {}): JsonObject => ({
  metadata: { labels: { app: name } },
  spec: { containers: [container], ...spec },
})

/** A Deployment of two pods, and its ReplicaSet; returns the reference that a pod has. */
function deployment(
  { sandbox }: TestCluster,
  name: string,
  { metadata = {}, spec = {} }: { metadata?: JsonObject; spec?: JsonObject } = {},
): JsonObject {
  const made = sandbox.create(deployments, {
    metadata: { name, namespace: 'shop', ...metadata },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: name } },
      template: templateOf(name),
      ...spec,
    },
    status: settled,
  })
  const set = sandbox.create(replicaSets, {
    metadata: {
      name: `${name}-1`,
      namespace: 'shop',
      ownerReferences: [referenceTo(made, 'apps/v1', 'Deployment')],
    },
    spec: { selector: { matchLabels: { app: name } }, template: templateOf(name) },
  })
  return referenceTo(set, 'apps/v1', 'ReplicaSet')
}

const referenceTo = (object: JsonObject, apiVersion: string, kind: string): JsonObject => ({
  apiVersion,
  kind,
  name: textAt(object, 'metadata', 'name'),
  uid: textAt(object, 'metadata', 'uid'),
  controller: true,
})

/** A pod on a node; by its address it is on the network of its host, unless another is given. */
function pod(
  { sandbox }: TestCluster,
  name: string,
  {
    node = 'edge-1',
    owner,
    spec = {},
    podIP = '192.0.2.1',
    phase = 'Running',
  }: { node?: string; owner?: JsonObject; spec?: JsonObject; podIP?: string; phase?: string } = {},
): JsonObject {
  const made = sandbox.create(pods, {
    metadata: {
      name,
      namespace: 'shop',
      labels: { app: name.split('-')[0] ?? '' },
      ...(owner && { ownerReferences: [owner] }),
    },
    spec: { nodeName: node, containers: [container], ...spec },
  })
  const status = { phase, hostIP: '192.0.2.1', podIP }
  return sandbox.update(pods, { ...made, status }, 'status')
}

const onHost = {
  hostNetwork: true,
  containers: [{ ...container, ports: [{ containerPort: 8080, hostPort: 8080 }] }],
}

/** What a controller does once the template has changed: its pods are made anew. */
function replacePods(cluster: TestCluster, owner: JsonObject, spec: JsonObject): void {
  for (const [at, name] of ['web-1', 'web-2'].entries()) {
    cluster.sandbox.delete(pods, name, 'shop', { gracePeriodSeconds: 0 })
    pod(cluster, name, { owner, spec, node: `edge-${at + 1}` })
  }
}

const specOf = ({ sandbox }: TestCluster, name: string): JsonObject =>
  objectAt(sandbox.get(deployments, name, 'shop'), 'spec')

void t.test('the plan has each owner with the patch that keeps its pods running', async (t) => {
  const cluster = await edgeCluster(t)
  const web = deployment(cluster, 'web')
  pod(cluster, 'web-1', { owner: web })
  pod(cluster, 'web-2', { owner: web, node: 'edge-2' })
  pod(cluster, 'own-1', { owner: deployment(cluster, 'own'), node: 'cloud-1', podIP: '10.0.0.7' })
  const { code, out } = await plan(cluster, { output: 'json' })
  t.equal(code, 1)
  const { owners } = JSON.parse(out) as { owners: JsonObject[] }
  t.equal(owners.length, 1, 'a pod with an address of its own needs nothing')
  t.match(owners[0], {
    kind: 'Deployment',
    namespace: 'shop',
    name: 'web',
    action: 'patch',
    propagated: 2,
    forecast: { wanted: 2, pending: 0, clashes: [] },
  })
  t.strictSame(valueAt(owners[0], 'patch'), {
    type: 'strategic',
    body: {
      spec: {
        template: {
          spec: {
            hostNetwork: true,
            containers: [
              { name: 'main', ports: [{ containerPort: 8080, hostPort: 8080, protocol: 'TCP' }] },
            ],
            nodeSelector: { [hostNetworkLabel]: 'true' },
            affinity: {
              podAntiAffinity: {
                requiredDuringSchedulingIgnoredDuringExecution: [
                  {
                    labelSelector: { matchLabels: { app: 'web' } },
                    topologyKey: 'kubernetes.io/hostname',
                  },
                ],
              },
            },
          },
        },
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      },
    },
  })
  t.notMatch(specOf(cluster, 'web'), { template: { spec: { hostNetwork: true } } })
  const text = (await plan(cluster)).out
  t.match(text, /1 +Deployment shop\/web +2 +patch +host network +2 of 2/)
  t.match(text, 'kubectl patch -n shop deployments.apps/web --type=strategic -p \'{"spec"')
})

void t.test('for a pod without an IP its hub’s condition decides', async (t) => {
  const cluster = await edgeCluster(t)
  for (const [name, status] of [
    ['web', 'True'],
    ['own', 'False'],
  ] as const) {
    const made = pod(cluster, `${name}-1`, { owner: deployment(cluster, name) })
    const condition = { type: 'HostNetworkPropagated', status, reason: 'Tested' }
    const pending = { phase: 'Pending', hostIP: '192.0.2.1', conditions: [condition] }
    cluster.sandbox.update(pods, { ...made, status: pending }, 'status')
  }
  const { out } = await plan(cluster, { output: 'json' })
  const { owners } = JSON.parse(out) as { owners: JsonObject[] }
  t.match(owners, [{ name: 'web', propagated: 1 }])
  t.equal(owners.length, 1, 'a refused pod is not on the host network')
})

void t.test('--apply patches an owner, waits for its pods, and ends with none left', async (t) => {
  const cluster = await edgeCluster(t)
  const web = deployment(cluster, 'web')
  replacePodsAtFirst(cluster, web)
  const api = await cluster.connect((request, status) => {
    const isWrite = request.method === 'PATCH' && !request.path.includes('dryRun')
    if (isWrite && status === 200 && request.path.endsWith('/web'))
      replacePods(cluster, web, onHost)
  })
  const { code, out } = await plan({ ...cluster, api }, { apply: true })
  t.match(
    out,
    /Deployment shop\/web:\n {2}patched\n {2}settled in \d+ s: 2 available at least, of 2/,
  )
  t.match(out, 'no pod needs the filter any more')
  t.match(
    out,
    /\nthe plan misses owners without a propagated pod now .*: run `nodehub lint` on them first\n$/,
  )
  t.equal(code, 0)
  t.match(specOf(cluster, 'web'), { template: { spec: { hostNetwork: true } } })
  const annotations = valueAt(
    cluster.sandbox.get(deployments, 'web', 'shop'),
    'metadata',
    'annotations',
  )
  t.strictSame(annotations ?? {}, {}, 'nothing is kept of what it was')
  t.equal((await plan(cluster, { apply: true })).code, 0, 'a second run finds nothing')
  t.match((await plan(cluster)).out, 'the plan misses owners without a propagated pod now')
})

function replacePodsAtFirst(cluster: TestCluster, owner: JsonObject): void {
  pod(cluster, 'web-1', { owner })
  pod(cluster, 'web-2', { owner, node: 'edge-2' })
}

void t.test('an owner that does not settle is reverted, and the next is left', async (t) => {
  const cluster = await edgeCluster(t)
  const { sandbox } = cluster
  for (const name of ['web', 'zeta']) {
    const spec = name === 'web' ? {} : { strategy: { type: 'Recreate' } }
    const owner = deployment(cluster, name, { spec })
    pod(cluster, `${name}-1`, { owner })
    pod(cluster, `${name}-2`, { owner, node: 'edge-2' })
  }
  const unavailable = { ...settled, availableReplicas: 1 }
  const now = sandbox.get(deployments, 'web', 'shop')!
  sandbox.update(deployments, { ...now, status: unavailable }, 'status')
  const before = ['web', 'zeta'].map((name) => specOf(cluster, name))
  const { code, out } = await plan(cluster, { apply: true, settleMs: 0 })
  t.equal(code, 1)
  t.match(out, /Deployment shop\/web:\n {2}patched\n {2}not settled within 0 s\n {2}taken back/)
  t.match(out, 'stopped: owners after this one are as they were')
  t.strictSame(
    ['web', 'zeta'].map((name) => specOf(cluster, name)),
    before,
  )
})

void t.test('an owner that was changed after the plan is left alone', async (t) => {
  const cluster = await edgeCluster(t)
  replacePodsAtFirst(cluster, deployment(cluster, 'web'))
  const { sandbox } = cluster
  let changed = false
  // The plan reads the Deployment once; the second reading is that before its patch.
  const api = await cluster.connect(({ method, path }) => {
    if (method !== 'GET' || !path.endsWith('/deployments/web') || changed) return
    changed = true
    const now = sandbox.get(deployments, 'web', 'shop')!
    const image = { ...container, image: 'web:2' }
    sandbox.update(deployments, withAt(now, ['spec', 'template', 'spec', 'containers'], [image]))
  })
  const { code, out } = await plan({ ...cluster, api }, { apply: true })
  t.equal(code, 1)
  t.match(out, 'not changed: it was changed after the plan was made: plan again')
  t.notMatch(specOf(cluster, 'web'), { template: { spec: { hostNetwork: true } } })
})

void t.test('owners that cannot be patched are named with advice', async (t) => {
  const cluster = await edgeCluster(t)
  const { sandbox } = cluster
  const release = { annotations: { 'meta.helm.sh/release-name': 'chart' } }
  pod(cluster, 'chart-1', { owner: deployment(cluster, 'chart', { metadata: release }) })
  const mixed = deployment(cluster, 'mixed')
  pod(cluster, 'mixed-1', { owner: mixed })
  pod(cluster, 'mixed-2', { owner: mixed, node: 'cloud-1', podIP: '10.0.0.9' })
  pod(cluster, 'bare')
  const rollout = {
    apiVersion: 'argoproj.io/v1',
    kind: 'Roll\u001b[2Jout',
    name: 'r',
    uid: 'r',
    controller: true,
  }
  pod(cluster, 'unknown', { owner: rollout })
  const crowded = deployment(cluster, 'crowded', { spec: { replicas: 3 } })
  pod(cluster, 'crowded-1', { owner: crowded })
  const { out, code } = await plan(cluster, { apply: true })
  t.equal(code, 1)
  t.match(out, 'left: Helm release chart writes it: make the change at its source')
  t.match(out, 'left: it has pods on standard nodes, too')
  t.match(out, 'left: a pod cannot be changed: create it again, or give --recreate')
  t.match(out, 'left: nothing is known of argoproj.io/v1 Roll\ufffd[2Jout')
  t.notMatch(out, '\u001b')
  t.match(out, 'left: 1 of 3 pods would stay Pending')
  t.equal(sandbox.get(pods, 'bare', 'shop') !== undefined, true)
  const other = await plan(cluster, { mixed: 'keep-off', includeManaged: true, output: 'json' })
  const { owners } = JSON.parse(other.out) as { owners: JsonObject[] }
  const find = (name: string): Json | undefined => owners.find((owner) => owner['name'] === name)
  t.match(find('chart'), { action: 'patch' })
  t.match(find('mixed'), { action: 'patch', intent: 'keep-off' })
  t.match(find('bare'), { manifest: { spec: { hostNetwork: true } } })
})

void t.test('a namespace that forbids the host network keeps its owners unpatched', async (t) => {
  const cluster = await edgeCluster(t)
  const { sandbox } = cluster
  const labels = { 'pod-security.kubernetes.io/enforce': 'baseline' }
  const now = sandbox.get(namespaces, 'shop')!
  sandbox.update(namespaces, withAt(now, ['metadata', 'labels'], labels))
  replacePodsAtFirst(cluster, deployment(cluster, 'web'))
  const { out } = await plan(cluster, { apply: true })
  t.match(out, 'left: namespace shop enforces the level baseline, which refuses hostNetwork')
  t.notMatch(specOf(cluster, 'web'), { template: { spec: { hostNetwork: true } } })
})

void t.test('pods of another owner that hold the port unseen are named', async (t) => {
  const cluster = await edgeCluster(t)
  pod(cluster, 'web-1', { owner: deployment(cluster, 'web', { spec: { replicas: 1 } }) })
  const other = deployment(cluster, 'zoo', { spec: { replicas: 1 } })
  pod(cluster, 'zoo-1', { owner: other, node: 'edge-2' })
  const { out } = await plan(cluster)
  t.match(out, 'may clash: shop/zoo-1 has 8080/TCP on edge-2')
  t.notMatch(out, 'may clash: shop/web-1', 'once patched, it declares the port')
})

void t.test('a DaemonSet loses its surge, and nothing else', async (t) => {
  const cluster = await edgeCluster(t)
  const made = cluster.sandbox.create(daemonSets, {
    metadata: { name: 'agent', namespace: 'shop' },
    spec: {
      selector: { matchLabels: { app: 'agent' } },
      template: templateOf('agent', { nodeSelector: { [nodePoolLabel]: 'kiosks' } }),
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    },
    status: settled,
  })
  pod(cluster, 'agent-1', { owner: referenceTo(made, 'apps/v1', 'DaemonSet') })
  const { out } = await plan(cluster, { output: 'json' })
  const { owners } = JSON.parse(out) as { owners: JsonObject[] }
  t.match(owners[0], { action: 'patch', forecast: { wanted: 2, pending: 0 } })
  const spec = objectAt(owners[0], 'patch', 'body', 'spec')
  t.match(spec, { updateStrategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } })
  t.strictSame(Object.keys(objectAt(spec, 'template', 'spec')), ['hostNetwork', 'containers'])
})

/** A YurtAppSet with a Deployment, which still names it by the version that it was made in. */
async function clusterWithAppSet(t: Test): Promise<TestCluster> {
  const cluster = await edgeCluster(t)
  const { sandbox } = cluster
  sandbox.create(customResources, yurtAppSets)
  const template = {
    spec: { selector: { matchLabels: { app: 'web' } }, template: templateOf('web') },
  }
  const set = sandbox.create(appSets, {
    metadata: { name: 'web', namespace: 'shop' },
    spec: { workload: { workloadTemplate: { deploymentTemplate: template } } },
  })
  const owner = referenceTo(set, 'apps.openyurt.io/v1alpha1', 'YurtAppSet')
  const child = deployment(cluster, 'web-kiosks', { metadata: { ownerReferences: [owner] } })
  pod(cluster, 'web-1', { owner: child })
  return cluster
}

const appSets: GVR = { group: 'apps.openyurt.io', version: 'v1beta1', resource: 'yurtappsets' }
const wayToSpec = ['workload', 'workloadTemplate', 'deploymentTemplate', 'spec'] as const

void t.test('a YurtAppSet is patched whole, as custom resources take no other patch', async (t) => {
  const { out } = await plan(await clusterWithAppSet(t), { output: 'json' })
  const { owners } = JSON.parse(out) as { owners: JsonObject[] }
  t.equal(owners.length, 1, 'its Deployment, which would be written over, is no owner')
  t.match(owners[0], {
    apiVersion: 'apps.openyurt.io/v1beta1',
    kind: 'YurtAppSet',
    name: 'web',
    action: 'patch',
    patch: { type: 'merge' },
    notes: [/^its pools are rolled out at the same time: where one has a single pod/],
  })
  const spec = objectAt(owners[0], 'patch', 'body', 'spec', ...wayToSpec)
  t.equal(valueAt(listAt(spec, 'template', 'spec', 'containers')[0], 'image'), 'web')
  t.match(spec, { strategy: { rollingUpdate: { maxSurge: 0 } } })
})

void t.test('a reverted YurtAppSet keeps its workloads’ strategy meanwhile', async (t) => {
  const cluster = await clusterWithAppSet(t)
  const { sandbox } = cluster
  const child = (): JsonObject => sandbox.get(deployments, 'web-kiosks', 'shop')!
  const set = (): JsonObject => sandbox.get(appSets, 'web', 'shop')!
  const own = { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } }
  /** What OpenYurt's controller does. */
  const reconcile = (): void => {
    const spec = objectAt(set(), 'spec', ...wayToSpec)
    const strategy = objectAt(spec, 'strategy')
    const written = Object.keys(strategy).length > 0 ? strategy : own
    sandbox.update(deployments, {
      ...child(),
      spec: { ...objectAt(child(), 'spec'), ...spec, strategy: written },
    })
    const now = set()
    const status = { observedGeneration: valueAt(now, 'metadata', 'generation') ?? 0 }
    sandbox.update(appSets, { ...now, status }, 'status')
  }
  reconcile()
  const before = set()['spec']
  const seen: Json[] = []
  let patches = 0
  const api = await cluster.connect(({ method, path }) => {
    if (method !== 'PATCH' || path.includes('dryRun')) return
    // At the first it does nothing yet.
    if (path.endsWith('/v1beta1/namespaces/shop/yurtappsets/web') && ++patches === 2) {
      const stuck = { ...settled, availableReplicas: 1 }
      sandbox.update(deployments, { ...child(), status: stuck }, 'status')
      reconcile()
    }
    if (!path.endsWith('/deployments/web-kiosks')) return
    seen.push(valueAt(child(), 'spec', 'strategy', 'rollingUpdate', 'maxSurge') ?? null)
    sandbox.update(deployments, { ...child(), status: settled }, 'status')
  })
  const { out, code } = await plan({ ...cluster, api }, { apply: true, settleMs: 0 })
  t.equal(code, 1)
  t.match(out, 'not settled within 0 s', 'available as they are, its pods are not those wanted')
  t.match(out, 'taken back, and settled')
  t.strictSame(set()['spec'], before)
  t.strictSame(seen, [0, '25%'], 'under its own, a new pod would wait for the port of an old one')
  t.strictSame(valueAt(child(), 'spec', 'strategy'), own)
  t.notMatch(child(), { spec: { template: { spec: { hostNetwork: true } } } })
})

const yurtAppSets: JsonObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'yurtappsets.apps.openyurt.io' },
  spec: {
    group: 'apps.openyurt.io',
    names: {
      kind: 'YurtAppSet',
      listKind: 'YurtAppSetList',
      plural: 'yurtappsets',
      singular: 'yurtappset',
    },
    scope: 'Namespaced',
    versions: ['v1alpha1', 'v1beta1'].map((name) => ({
      name,
      served: true,
      storage: name === 'v1beta1',
      subresources: { status: {} },
      schema: {
        openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      },
    })),
  },
}

void t.test('a client without a right gets the ClusterRole', async (t) => {
  const cluster = await edgeCluster(t)
  replacePodsAtFirst(cluster, deployment(cluster, 'web'))
  cluster.sandbox.authorize(({ verb }) => verb !== 'patch')
  const { code, err } = await plan(cluster, { apply: true })
  t.equal(code, 1)
  t.match(
    err,
    'Grant this to its user, and run it again:\napiVersion: rbac.authorization.k8s.io/v1',
  )
  t.match(err, /deployments\n +- statefulsets\n +verbs:\n +- get\n +- list\n +- patch/)
})

void t.test('a change of another client is not reverted', async (t) => {
  const cluster = await edgeCluster(t)
  const { sandbox } = cluster
  replacePodsAtFirst(cluster, deployment(cluster, 'web'))
  const now = sandbox.get(deployments, 'web', 'shop')!
  const status = { ...settled, availableReplicas: 1 }
  sandbox.update(deployments, { ...now, status }, 'status')
  const api = await cluster.connect(({ method, path }) => {
    if (method !== 'PATCH' || path.includes('dryRun')) return
    const patched = sandbox.get(deployments, 'web', 'shop')!
    sandbox.update(deployments, withAt(patched, ['spec', 'minReadySeconds'], 7))
  })
  const { code, out } = await plan({ ...cluster, api }, { apply: true, settleMs: 0 })
  t.equal(code, 1)
  t.match(out, 'left as it is: it was changed meanwhile; annotation nodehub.io/before-exit-plan')
  t.match(specOf(cluster, 'web'), { template: { spec: { hostNetwork: true } } })
})

void t.test('an interrupted rollout is awaited, and can be reverted', async (t) => {
  const cluster = await edgeCluster(t)
  const { sandbox } = cluster
  replacePodsAtFirst(cluster, deployment(cluster, 'web'))
  const before = specOf(cluster, 'web')
  const stuck = { ...settled, availableReplicas: 1 }
  const now = sandbox.get(deployments, 'web', 'shop')!
  sandbox.update(deployments, { ...now, status: stuck }, 'status')
  const api = await cluster.connect(({ method, path }) => {
    if (method === 'PATCH' && !path.includes('dryRun'))
      sandbox.authorize(({ verb, resource }) => verb !== 'get' || resource !== 'deployments')
  })
  t.match((await plan({ ...cluster, api }, { apply: true })).err, 'Grant this')
  sandbox.authorize(() => true)
  t.match(specOf(cluster, 'web'), { template: { spec: { hostNetwork: true } } })
  const again = await plan(cluster, { apply: true, settleMs: 0 })
  t.match(again.out, /Deployment shop\/web +2 +wait/)
  t.match(again.out, 'taken back')
  t.strictSame(specOf(cluster, 'web'), before)
})

void t.test('a pod without an owner is created again on request', async (t) => {
  const cluster = await edgeCluster(t)
  pod(cluster, 'bare')
  const { sandbox } = cluster
  const api = await cluster.connect((request, status) => {
    // What its kubelet does.
    if (request.method === 'DELETE') sandbox.delete(pods, 'bare', 'shop', { gracePeriodSeconds: 0 })
    const isCreate = request.method === 'POST' && !request.path.includes('dryRun')
    if (!isCreate || status !== 201) return
    const made = sandbox.get(pods, 'bare', 'shop')!
    const ready = { conditions: [{ type: 'Ready', status: 'True' }] }
    sandbox.update(pods, { ...made, status: ready }, 'status')
  })
  const { out, code } = await plan({ ...cluster, api }, { apply: true, recreate: true })
  t.match(out, 'created again, and running')
  t.equal(code, 0)
  t.match(sandbox.get(pods, 'bare', 'shop'), {
    spec: { hostNetwork: true, nodeSelector: { [hostNetworkLabel]: 'true' } },
  })
})

void t.test('a pod is created again although the API server fails at it', async (t) => {
  const cluster = await edgeCluster(t)
  pod(cluster, 'bare')
  const { sandbox } = cluster
  const reads: RequestMatch = ({ method, path }) => method === 'GET' && path.endsWith('/pods/bare')
  const creates: RequestMatch = ({ method, path, query }) =>
    method === 'POST' && path.endsWith('/pods') && !query.has('dryRun')
  const struck: string[] = []
  let fault: Disposable | undefined
  const next = (name: string, following?: Disposable): void => {
    struck.push(name)
    fault?.[Symbol.dispose]()
    fault = following
  }
  const api = await cluster.connect(({ method, path }, status) => {
    if (method === 'DELETE' && status === 200) {
      sandbox.delete(pods, 'bare', 'shop', { gracePeriodSeconds: 0 })
      fault = sandbox.faults.fail(500, reads)
    } else if (method === 'GET' && status === 500) {
      next('is it gone', sandbox.faults.cut(0, creates))
    } else if (method === 'POST' && status === 201 && !path.includes('dryRun')) {
      const made = sandbox.get(pods, 'bare', 'shop')!
      const ready = { conditions: [{ type: 'Ready', status: 'True' }] }
      sandbox.update(pods, { ...made, status: ready }, 'status')
      next('created, without an answer', sandbox.faults.reset(reads))
    } else if (method === 'GET' && status === undefined) {
      next('is it there')
    }
  })
  const { out, code } = await plan({ ...cluster, api }, { apply: true, recreate: true })
  t.strictSame(struck, ['is it gone', 'created, without an answer', 'is it there'])
  t.match(out, 'created again, and running')
  t.equal(code, 0)
  t.match(sandbox.get(pods, 'bare', 'shop'), { spec: { hostNetwork: true } })
})

void t.test('a recreated pod that does not run is replaced by the original', async (t) => {
  const cluster = await edgeCluster(t)
  pod(cluster, 'bare')
  const { sandbox } = cluster
  const api = await cluster.connect(({ method }, status) => {
    // The second one is on no node, and goes at once.
    if (method === 'DELETE' && status === 200 && sandbox.get(pods, 'bare', 'shop'))
      sandbox.delete(pods, 'bare', 'shop', { gracePeriodSeconds: 0 })
  })
  const options = { apply: true, recreate: true, settleMs: 0 }
  const { out, code } = await plan({ ...cluster, api }, options)
  t.match(out, 'the new one does not run in time\n  taken back\n')
  t.equal(code, 1)
  t.notMatch(sandbox.get(pods, 'bare', 'shop') ?? { spec: { hostNetwork: true } }, {
    spec: { hostNetwork: true },
  })
})

void t.test('a pod that cannot be recreated gets its manifest printed', async (t) => {
  const cluster = await edgeCluster(t)
  pod(cluster, 'bare')
  const { sandbox } = cluster
  const api = await cluster.connect(({ method }, status) => {
    if (method !== 'DELETE' || status !== 200) return
    sandbox.delete(pods, 'bare', 'shop', { gracePeriodSeconds: 0 })
    sandbox.authorize(({ verb }) => verb !== 'create')
  })
  const { out, code } = await plan({ ...cluster, api }, { apply: true, recreate: true })
  t.match(out, /not created: .*\n {2}not taken back: .* Create it as it was from this:\n {2}\{/)
  t.equal(code, 1)
})
