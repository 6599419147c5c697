import t, { type Test } from 'tap'
import { exitPlan } from '../../src/cli/exit-plan.ts'
import type { GVR } from '../../src/api/kube/gvk.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt, withAt } from '../../src/api/kube/json-at.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../src/api/kube/node-pool.ts'
import { readExitPlanConfig, type ExitPlanConfig } from '../../src/config/cluster-config.ts'
import { nodes, pods } from '../kit/cloud.ts'
import { customResources } from '../kit/admission-kinds.ts'
import { startTestCluster, type TestCluster } from '../kit/cluster-api.ts'
import { said, type Said } from '../kit/terminal.ts'

t.setTimeout(300_000)

const apps = (resource: string): GVR => ({ group: 'apps', version: 'v1', resource })
const deployments = apps('deployments')
const daemonSets = apps('daemonsets')
const replicaSets = apps('replicasets')
const namespaces: GVR = { group: '', version: 'v1', resource: 'namespaces' }

async function plan(
  { api, kubeconfig }: Pick<TestCluster, 'api' | 'kubeconfig'>,
  rest: Partial<ExitPlanConfig> = {},
): Promise<Said> {
  const config: ExitPlanConfig = {
    access: { kind: 'kubeconfig', file: kubeconfig },
    namespace: 'kube-system',
    keepOff: [],
    output: 'table',
    ...rest,
  }
  return said((terminal) => exitPlan(api, config, terminal))
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

function twoPods(cluster: TestCluster, owner: JsonObject): void {
  pod(cluster, 'web-1', { owner })
  pod(cluster, 'web-2', { owner, node: 'edge-2' })
}

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
  const text = (await plan(cluster)).out
  t.match(text, /1 +Deployment shop\/web +2 +patch +host network/)
  t.match(text, 'kubectl patch -n shop deployments.apps/web --type=strategic -p \'{"spec"')
})

void t.test('owners that cannot be patched are named with advice', async (t) => {
  const cluster = await edgeCluster(t)
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
  const { out, code } = await plan(cluster)
  t.equal(code, 1)
  t.match(
    out,
    'left: Helm release chart writes it, and could overwrite a patch: make the change at its source',
  )
  t.match(out, 'left: it has pods on standard nodes, too')
  t.match(out, 'left: it cannot be changed: delete it, and create it with hostNetwork: true')
  t.match(out, 'left: nothing is known of argoproj.io/v1 Roll\ufffd[2Jout')
  t.notMatch(out, '\u001b')
  const other = await plan(cluster, { keepOff: ['shop/mixed'], output: 'json' })
  const { owners } = JSON.parse(other.out) as { owners: JsonObject[] }
  const find = (name: string): Json | undefined => owners.find((owner) => owner['name'] === name)
  t.match(find('chart'), { action: 'leave', patch: { type: 'strategic' } })
  t.match(find('mixed'), { action: 'patch', intent: 'keep-off' })
})

void t.test('a namespace that forbids the host network keeps its owners unpatched', async (t) => {
  const cluster = await edgeCluster(t)
  const { sandbox } = cluster
  const labels = { 'pod-security.kubernetes.io/enforce': 'baseline' }
  const now = sandbox.get(namespaces, 'shop')!
  sandbox.update(namespaces, withAt(now, ['metadata', 'labels'], labels))
  twoPods(cluster, deployment(cluster, 'web'))
  const { out } = await plan(cluster)
  t.match(out, 'left: namespace shop enforces the level baseline, which refuses hostNetwork')
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
  })
  pod(cluster, 'agent-1', { owner: referenceTo(made, 'apps/v1', 'DaemonSet') })
  const { out } = await plan(cluster, { output: 'json' })
  const { owners } = JSON.parse(out) as { owners: JsonObject[] }
  t.match(owners[0], { action: 'patch' })
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
  })
  const spec = objectAt(owners[0], 'patch', 'body', 'spec', ...wayToSpec)
  t.equal(valueAt(listAt(spec, 'template', 'spec', 'containers')[0], 'image'), 'web')
  t.match(spec, { strategy: { rollingUpdate: { maxSurge: 0 } } })
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

void t.test('a client without a right learns which', async (t) => {
  const cluster = await edgeCluster(t)
  twoPods(cluster, deployment(cluster, 'web'))
  cluster.sandbox.authorize(({ verb }) => verb !== 'get')
  await t.rejects(plan(cluster), { message: /403 Forbidden: .* cannot get resource/ })
})

void t.test('nothing is changed: the plan only reads', async (t) => {
  const cluster = await edgeCluster(t)
  twoPods(cluster, deployment(cluster, 'web'))
  pod(cluster, 'bare')
  const methods = new Set<string>()
  const api = await cluster.connect(({ method }) => void methods.add(method))
  t.equal((await plan({ ...cluster, api })).code, 1)
  t.strictSame([...methods], ['GET'])
})

void t.test('a patched owner waits for its last pods, and then none is left', async (t) => {
  const cluster = await edgeCluster(t)
  const { sandbox } = cluster
  const web = deployment(cluster, 'web')
  twoPods(cluster, web)
  const now = sandbox.get(deployments, 'web', 'shop')!
  sandbox.update(
    deployments,
    withAt(now, ['spec', 'template', 'spec'], { hostNetwork: true, containers: [container] }),
  )
  t.match((await plan(cluster)).out, /Deployment shop\/web +2 +wait/)
  for (const [at, name] of ['web-1', 'web-2'].entries()) {
    sandbox.delete(pods, name, 'shop', { gracePeriodSeconds: 0 })
    pod(cluster, name, { owner: web, spec: { hostNetwork: true }, node: `edge-${at + 1}` })
  }
  const { code, out } = await plan(cluster)
  t.equal(code, 0)
  t.match(out, 'no pod needs the filter any more')
  t.match(
    out,
    /\nthe plan misses owners without a propagated pod now .*: run `nodehub lint` on them first\n$/,
  )
})

void t.test('flags of a release that applied the plan are named, and change nothing', async (t) => {
  const read = readExitPlanConfig({
    argv: ['--kubeconfig=/etc/admin.conf', '--apply', '--only=shop/web'],
    env: {},
    readFile: () => '',
  })
  t.match(read, {
    notes: [/^--apply has no effect any more: .* kubectl/, /^--only has no effect any more/],
  })
})
