import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { connect } from '../../src/cluster/api/connect.ts'
import { checkCluster } from '../../src/cli/cluster-check.ts'
import { poolDefinition } from '../../src/cluster/crd/definition.ts'
import { roles } from '../../src/cluster/install/roles.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { valueAt, listAt, textAt } from '../../src/api/kube/json-at.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../src/api/kube/node-pool.ts'
import type { ApiClient } from '../kit/cluster/api-client.ts'
import { until } from '../kit/until.ts'
import {
  administrator,
  noControlPlane,
  startControlPlane,
  type ControlPlane,
} from '../kit/control-plane.ts'

t.setTimeout(300_000)

const skip = noControlPlane() ?? false
const own = { namespace: 'nodehub-system', name: 'nodehub-cluster' }
const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')

const nodes = '/api/v1/nodes'
const pods = '/api/v1/namespaces/default/pods'
const pools = '/apis/apps.openyurt.io/v1beta2/nodepools'
const daemonSets = '/apis/apps/v1/namespaces/kube-system/daemonsets'
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const lease = '/apis/coordination.k8s.io/v1/namespaces/nodehub-system/leases/nodehub-cluster'

const clone = (object: object): JsonObject => JSON.parse(JSON.stringify(object)) as JsonObject

async function create(admin: ApiClient, path: string, object: object): Promise<JsonObject> {
  const answer = await admin.post(path, object)
  if (answer.status !== 201) throw new Error(`${path}: ${answer.body.toString()}`)
  return JSON.parse(answer.body.toString()) as JsonObject
}

const read = async (admin: ApiClient, path: string): Promise<JsonObject> =>
  JSON.parse((await admin.get(path)).body.toString()) as JsonObject

async function merge(admin: ApiClient, path: string, patch: object): Promise<void> {
  const { status, body } = await admin.send(
    'PATCH',
    path,
    JSON.stringify(patch),
    'application/merge-patch+json',
  )
  if (status !== 200) throw new Error(body.toString())
}

const paths: Readonly<Record<string, string>> = {
  ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  Role: '/apis/rbac.authorization.k8s.io/v1/namespaces/NAMESPACE/roles',
  RoleBinding: '/apis/rbac.authorization.k8s.io/v1/namespaces/NAMESPACE/rolebindings',
}

/**
 * Pools as they were stored by an older release; no webhook converts them, and none admits
 * anything.
 */
async function prepare({ admin }: ControlPlane): Promise<void> {
  await create(admin, '/api/v1/namespaces', { metadata: { name: own.namespace } })
  const installation = {
    ...own,
    image: 'none',
    admission: 'webhooks',
    podHostNetwork: false,
  } as const
  for (const object of roles(installation).map(clone)) {
    const path = paths[textAt(object, 'kind')] ?? ''
    await create(admin, path.replace('NAMESPACE', textAt(object, 'metadata', 'namespace')), object)
  }
  const definition = clone(poolDefinition({ at: { ...own, port: 443 } }))
  const spec = definition['spec'] as JsonObject
  const storing = (version: string) => ({
    ...definition,
    spec: {
      ...spec,
      conversion: { strategy: 'None' },
      versions: listAt(definition, 'spec', 'versions').map((each) => ({
        ...(each as JsonObject),
        storage: textAt(each, 'name') === version,
      })),
    },
  })
  await create(admin, definitions, storing('v1beta1'))
  await until('pools to be served', async () => (await admin.get(pools)).status === 200)
  await create(admin, '/apis/apps.openyurt.io/v1beta1/nodepools', {
    apiVersion: 'apps.openyurt.io/v1beta1',
    kind: 'NodePool',
    metadata: { name: 'old' },
    spec: { type: 'Edge' },
  })
  await merge(admin, `${definitions}/nodepools.apps.openyurt.io`, { spec: storing('v1beta2').spec })
}

const hostPool = (name: string): JsonObject => ({
  apiVersion: 'apps.openyurt.io/v1beta2',
  kind: 'NodePool',
  metadata: { name },
  spec: { type: 'Edge', hostNetwork: true, labels: { zone: 'a' } },
})

const node = (name: string, labels: JsonObject = {}): JsonObject => ({
  metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
})

const roomy = {
  status: {
    capacity: { cpu: '4', memory: '4Gi', pods: '50' },
    allocatable: { cpu: '4', memory: '4Gi', pods: '50' },
    conditions: [{ type: 'Ready', status: 'True' }],
  },
}

async function addNode(admin: ApiClient, name: string, labels: JsonObject = {}): Promise<void> {
  await create(admin, nodes, node(name, labels))
  await merge(admin, `${nodes}/${name}/status`, roomy)
}

const daemonSet = (name: string, spec: JsonObject = {}): JsonObject => ({
  metadata: { name },
  spec: {
    selector: { matchLabels: { name } },
    template: {
      metadata: { labels: { name } },
      spec: {
        tolerations: [{ operator: 'Exists' }],
        containers: [{ name: 'main', image: 'none' }],
        ...spec,
      },
    },
  },
})

const keptOff = {
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: hostNetworkLabel, operator: 'NotIn', values: ['true'] }] },
        ],
      },
    },
  },
}

class Replica {
  readonly process: ChildProcess
  log = ''

  constructor(t: Test, kubeconfig: string) {
    const flags = [
      `--kubeconfig=${kubeconfig}`,
      `--namespace=${own.namespace}`,
      '--webhook-address=127.0.0.1',
      '--webhook-port=0',
      '--ops-address=127.0.0.1',
      '--ops-port=0',
      '--lease-duration=10s',
      '--renew-deadline=7s',
      '--retry-period=1s',
    ]
    this.process = spawn(process.execPath, [main, 'cluster', ...flags], {
      stdio: ['ignore', 'inherit', 'pipe'],
    })
    this.process.stderr?.on('data', (text: Buffer) => {
      this.log += text.toString()
    })
    t.teardown(() => this.end('SIGKILL'))
  }

  get leads(): boolean {
    return this.log.includes('this replica leads')
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    if (this.process.exitCode !== null || this.process.signalCode !== null)
      return this.process.exitCode
    const gone = once(this.process, 'exit')
    this.process.kill(signal)
    const [code] = (await gone) as [number | null]
    return code
  }
}

const labelled = async (admin: ApiClient, name: string): Promise<boolean> =>
  valueAt(await read(admin, `${nodes}/${name}`), 'metadata', 'labels', hostNetworkLabel) === 'true'

void t.test(
  'a replica with least privilege reconciles pools and nodes at an API server',
  { skip, timeout: 300_000 },
  async (t) => {
    const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
    const { admin } = plane
    await prepare(plane)
    await create(admin, pools, hostPool('h'))
    await addNode(admin, 'h-1', { [nodePoolLabel]: 'h' })
    await addNode(admin, 'free-1')
    const kubeconfig = plane.kubeconfig({
      commonName: `system:serviceaccount:${own.namespace}:${own.name}`,
      organizations: ['system:serviceaccounts', `system:serviceaccounts:${own.namespace}`],
    })
    const first = new Replica(t, kubeconfig)
    await until('it to lead', () => first.leads, { describe: () => first.log })

    await t.test('labels and status arrive', async (t) => {
      await until('the label', () => labelled(admin, 'h-1'))
      await until('the status', async () => {
        const pool = await read(admin, `${pools}/h`)
        return (
          listAt(pool, 'status', 'nodes')[0] === 'h-1' && listAt(pool, 'metadata', 'finalizers')[0]
        )
      })
      t.equal(await first.end('SIGTERM'), 0)
      t.equal(
        valueAt(await read(admin, lease), 'spec', 'holderIdentity') ?? '',
        '',
        'the lease is free',
      )
    })

    await t.test(
      'a label that was taken off is put back: the CNI is evicted, the API objects of other pods stay',
      async (t) => {
        await create(admin, pods, {
          metadata: { name: 'works' },
          spec: {
            nodeName: 'h-1',
            hostNetwork: true,
            automountServiceAccountToken: false,
            containers: [{ name: 'main', image: 'none' }],
          },
        })
        await merge(admin, `${pods}/works/status`, { status: { phase: 'Running' } })
        const works = await read(admin, `${pods}/works`)
        await create(admin, daemonSets, daemonSet('cni', keptOff))
        const cniOn = async (name: string) =>
          listAt(await read(admin, '/api/v1/namespaces/kube-system/pods'), 'items').find(
            (pod) =>
              textAt(pod, 'spec', 'nodeName') === name &&
              valueAt(pod, 'metadata', 'deletionTimestamp') === undefined,
          )
        await until('the CNI on a standard node', () => cniOn('free-1'))
        t.notOk(await cniOn('h-1'))
        await merge(admin, `${nodes}/h-1`, { metadata: { labels: { [hostNetworkLabel]: null } } })
        await until('the CNI on the node without its label', () => cniOn('h-1'))

        const replica = new Replica(t, kubeconfig)
        await until('the label again', () => labelled(admin, 'h-1'), {
          describe: () => replica.log,
        })
        await until('the CNI to leave', async () => (await cniOn('h-1')) === undefined)
        t.strictSame(await read(admin, `${pods}/works`), works)
        t.ok(await cniOn('free-1'))
      },
    )

    await t.test(
      'components have a command that keeps them off, excluded pods are named',
      async (t) => {
        await create(admin, daemonSets, daemonSet('kube-proxy', { nodeSelector: { none: 'such' } }))
        await create(admin, pods, {
          metadata: {
            name: 'slipped',
            annotations: { 'apps.openyurt.io/exclude-host-network-pool': 'true' },
          },
          spec: {
            nodeName: 'h-1',
            automountServiceAccountToken: false,
            containers: [{ name: 'main', image: 'none' }],
          },
        })
        const { out } = await check(plane)
        t.match(out, 'pod default/slipped: excluded from host-network pools, but on h-1')
        const patch = /daemonset\/kube-proxy --type=merge -p '(.*)'/.exec(out)?.[1] ?? ''
        await merge(admin, `${daemonSets}/kube-proxy`, JSON.parse(patch) as JsonObject)
        const affinity = async () =>
          valueAt(
            await read(admin, `${daemonSets}/kube-proxy`),
            'spec',
            'template',
            'spec',
            'affinity',
          )
        t.strictSame(await affinity(), keptOff.affinity)
        t.match((await check(plane)).out, 'kube-proxy (kube-proxy): kept off')
      },
    )
  },
)

const askingOf = (plane: ControlPlane) => ({
  access: { kind: 'kubeconfig', file: plane.kubeconfig(administrator) } as const,
  namespace: own.namespace,
  qps: 100,
  burst: 100,
})

async function check(plane: ControlPlane): Promise<{ code: number; out: string }> {
  await using connected = await connect(askingOf(plane))
  let out = ''
  const take = (text: string): void => void (out += text)
  return { code: await checkCluster(connected.api, { out: take, err: take }), out }
}
