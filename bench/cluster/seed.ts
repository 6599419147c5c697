import { poolDefinition } from '../../src/cluster/crd/definition.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { nodePoolLabel } from '../../src/api/kube/node-pool.ts'
import { until } from '../../test/kit/until.ts'
import type { ControlPlane } from '../../test/kit/control-plane.ts'

const pools = '/apis/apps.openyurt.io/v1beta2/nodepools'

/** As a kubelet leaves a node: most of it is images. */
const node = (i: number, pool: number): object => ({
  metadata: {
    name: `node-${i}`,
    labels: {
      [nodePoolLabel]: `pool-${pool}`,
      'kubernetes.io/hostname': `node-${i}`,
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'arm64',
      'openyurt.io/is-edge-worker': 'true',
    },
    annotations: { 'node.alpha.kubernetes.io/ttl': '0', 'volumes.kubernetes.io/attach': 'true' },
  },
})

const status = (i: number): object => ({
  status: {
    conditions: ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
      type,
      status: type === 'Ready' ? 'True' : 'False',
      reason: 'KubeletHasNoPressure',
      message: 'kubelet is posting its status as it should',
    })),
    images: Array.from({ length: 50 }, (_, k) => ({
      names: [
        `registry.example/edge/component-${k}@sha256:${'0123456789abcdef'.repeat(4)}`,
        `registry.example/edge/component-${k}:v1.2.${i % 10}`,
      ],
      sizeBytes: 50_000_000 + k,
    })),
  },
})

/** Makes the definition, the pools and the nodes. */
export async function seedCluster(
  { admin }: ControlPlane,
  nodeCount: number,
  poolCount: number,
): Promise<void> {
  const definition = poolDefinition({ at: { namespace: 'none', name: 'none', port: 443 } })
  await created(admin, '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    ...definition,
    spec: { ...definition.spec, conversion: { strategy: 'None' } },
  })
  await until('pools to be served', async () => (await admin.get(pools)).status === 200)
  await many(poolCount, (i) =>
    created(admin, pools, {
      apiVersion: 'apps.openyurt.io/v1beta2',
      kind: 'NodePool',
      metadata: { name: `pool-${i}` },
      spec: { type: 'Edge', labels: { generation: '1' } },
    }),
  )
  await many(nodeCount, async (i) => {
    await created(admin, '/api/v1/nodes', node(i, i % poolCount))
    await patched(admin, `/api/v1/nodes/node-${i}/status`, status(i))
  })
}

/** Gives every pool another label. */
export const changePools = ({ admin }: ControlPlane, poolCount: number): Promise<void> =>
  many(poolCount, (i) =>
    patched(admin, `${pools}/pool-${i}`, { spec: { labels: { generation: '2', tier: 'edge' } } }),
  )

type Admin = ControlPlane['admin']

async function created(admin: Admin, path: string, object: object): Promise<void> {
  const { status, body } = await admin.post(path, object)
  if (status !== 201) throw new Error(`${path}: ${status} ${body.toString()}`)
}

async function patched(admin: Admin, path: string, patch: object): Promise<void> {
  const type = 'application/merge-patch+json'
  const { status, body } = await admin.send(
    'PATCH',
    path,
    JSON.stringify(patch as JsonObject),
    type,
  )
  if (status !== 200) throw new Error(`${path}: ${status} ${body.toString()}`)
}

/** A few at a time. */
async function many(count: number, act: (i: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await act(next++)
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}
