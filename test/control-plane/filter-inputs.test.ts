import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { manifests } from '../../src/cli/manifests.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { at, objectOf, type Client } from '../kit/client.ts'
import { nodeName } from '../kit/cloud.ts'
import { until } from '../kit/until.ts'
import {
  type ControlPlane,
  noControlPlane,
  nodeSubject,
  startControlPlane,
} from '../kit/control-plane.ts'
import { startTestHub, type TestHub } from '../kit/hub.ts'
import { nodePool, poolDefinition } from '../kit/node-pools.ts'

t.setTimeout(240_000)

const skip = noControlPlane() ?? false
const rbacGroup = '/apis/rbac.authorization.k8s.io/v1'
const slices = '/apis/discovery.k8s.io/v1/endpointslices'
const accounts = '/api/v1/namespaces/kube-system/serviceaccounts'
const everywhere = ['edge-1', 'edge-2', 'edge-3']

void t.test(
  'once RBAC lets a node read its pool and the ConfigMap, filters follow them',
  { skip, timeout: 180_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    await fill(plane)
    const hub = await startTestHub(t, {
      upstreams: [plane],
      flags: [
        `--kubeconfig=${plane.kubeconfig(nodeSubject(nodeName))}`,
        '--hub-config-map=yurt-hub-cfg',
      ],
    })
    await hub.online()
    const proxy = hub.as('kube-proxy', { token: await proxyToken(plane) })
    const gateway = proxy.withOptions({ component: 'gateway' })

    await untilShown(proxy, everywhere)
    t.match(await verbose(hub), /\[ \]filters cannot read nodepools\.apps\.openyurt\.io: .*\(403\)/)
    await hub.logged('ConfigMap kube-system/yurt-hub-cfg cannot be read (403)')
    t.notMatch(await verbose(hub), /cannot read nodes/, 'its own Node it may read')

    await applyRbac(plane)
    // Authorizers hear of new roles a moment later.
    await until('filters to know the pool', async () => {
      hub.hub.reconfigure(hub.config)
      return !/\[ \]filters|\[ \]ConfigMap/.test(await verbose(hub))
    })
    await untilShown(proxy, ['edge-1', 'edge-3'])
    await untilShown(gateway, everywhere)
    await plane.admin.post('/api/v1/namespaces/kube-system/configmaps', {
      metadata: { name: 'yurt-hub-cfg' },
      data: { servicetopology: 'gateway' },
    })
    await hub.logged('ConfigMap kube-system/yurt-hub-cfg is in force')
    await untilShown(gateway, ['edge-1', 'edge-3'])

    const node = plane.client(nodeSubject(nodeName))
    t.teardown(() => node.close())
    const statusOf = async (path: string): Promise<number> => (await node.get(path)).status
    t.equal(await statusOf('/api/v1/namespaces/kube-system/configmaps/yurt-hub-cfg'), 200)
    t.equal(await statusOf('/api/v1/namespaces/kube-system/configmaps'), 403)
    t.equal(await statusOf('/api/v1/namespaces/kube-system/configmaps/another'), 403)
  },
)

/** A node in a pool, and a service whose endpoints are wanted of the pool alone. */
async function fill({ admin }: ControlPlane): Promise<void> {
  await made(
    admin.post('/api/v1/nodes', {
      metadata: { name: nodeName, labels: { 'apps.openyurt.io/nodepool': 'hangzhou' } },
    }),
  )
  await made(
    admin.post(
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      poolDefinition('NodePool', ['v1beta2']),
    ),
  )
  const pools = '/apis/apps.openyurt.io/v1beta2/nodepools'
  await until('NodePools to be served', async () => (await admin.get(pools)).status === 200)
  await made(
    admin.post(pools, {
      apiVersion: 'apps.openyurt.io/v1beta2',
      kind: 'NodePool',
      ...nodePool('hangzhou', ['edge-1', 'edge-3']),
    }),
  )
  await made(
    admin.post('/api/v1/namespaces/default/services', {
      metadata: {
        name: 'web',
        annotations: { 'openyurt.io/topologyKeys': 'openyurt.io/nodepool' },
      },
      spec: { ports: [{ port: 80 }] },
    }),
  )
  await made(
    admin.post('/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
      metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
      endpoints: everywhere.map((node, at) => ({ addresses: [`10.244.${at}.2`], nodeName: node })),
    }),
  )
}

async function made(answer: Promise<{ status: number; body: Buffer }>): Promise<void> {
  const { status, body } = await answer
  if (status !== 201) throw new Error(`${status}: ${body.toString()}`)
}

/** A token of a kube-proxy as clusters have it, which may read services and their endpoints. */
async function proxyToken({ admin }: ControlPlane): Promise<string> {
  await until('the namespace', async () => (await admin.get(accounts)).status === 200)
  await made(admin.post(accounts, { metadata: { name: 'kube-proxy' } }))
  await made(
    admin.post(`${rbacGroup}/clusterrolebindings`, {
      metadata: { name: 'kube-proxy' },
      roleRef: {
        apiGroup: 'rbac.authorization.k8s.io',
        kind: 'ClusterRole',
        name: 'system:node-proxier',
      },
      subjects: [{ kind: 'ServiceAccount', name: 'kube-proxy', namespace: 'kube-system' }],
    }),
  )
  const answer = await admin.post(`${accounts}/kube-proxy/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 3600 },
  })
  const { status } = answer.json() as unknown as { status: { token: string } }
  return status.token
}

/** What an operator applies with kubectl. */
async function applyRbac({ admin }: ControlPlane): Promise<void> {
  const printed: string[] = []
  const terminal = { out: (text: string) => printed.push(text), err: () => undefined }
  await manifests.run(['--part=rbac'], terminal)
  for (const document of parseAllDocuments(printed.join(''))) {
    const object = document.toJS() as { kind: string; metadata: { namespace?: string } }
    const { namespace } = object.metadata
    const place = namespace === undefined ? rbacGroup : `${rbacGroup}/namespaces/${namespace}`
    await made(admin.post(`${place}/${object.kind.toLowerCase()}s`, object))
  }
}

const verbose = async (hub: TestHub): Promise<string> =>
  (await hub.ops.get('/readyz?verbose')).body.toString()

const untilShown = (client: Client, nodes: readonly string[]): Promise<true> =>
  until(`endpoints on ${nodes.join(', ')}`, async () => {
    const answer = await client.get(slices)
    const items = (at(objectOf(answer), 'items') ?? []) as readonly JsonObject[]
    const web = items.find((item) => at(item, 'metadata', 'name') === 'web-1')
    const shown = ((web?.['endpoints'] ?? []) as readonly JsonObject[]).map(
      (each) => each['nodeName'],
    )
    return JSON.stringify(shown) === JSON.stringify(nodes)
  })
