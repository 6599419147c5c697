import { parseAllDocuments } from 'yaml'
import { manifests } from '../../src/cli/manifests.ts'
import { until } from '../kit/until.ts'
import type { ControlPlane } from '../kit/control-plane.ts'
import { poolDefinition as definitionOf } from '../kit/node-pools.ts'

const pools = '/apis/apps.openyurt.io/v1beta2/nodepools'

/** What pools are, without rules. */
const poolDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  ...definitionOf('NodePool', ['v1beta2']),
}

/** Lets nodes read what filters need, as `manifests` has it. */
export async function letNodesRead({ admin }: ControlPlane): Promise<void> {
  let rbac = ''
  await manifests.run(['--part=rbac'], { out: (text) => (rbac += text), err: () => undefined })
  for (const document of parseAllDocuments(rbac)) {
    const object = document.toJS() as { kind: string; metadata: { namespace?: string } }
    const { namespace } = object.metadata
    const place = namespace === undefined ? '' : `/namespaces/${namespace}`
    const path = `/apis/rbac.authorization.k8s.io/v1${place}/${object.kind.toLowerCase()}s`
    await until(path, async () => [201, 409].includes((await admin.post(path, object)).status))
  }
}

/** A host-network pool of the API, which nodes may read. */
export async function makeHostNetworkPool(plane: ControlPlane, name: string): Promise<void> {
  await letNodesRead(plane)
  await plane.admin.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', poolDefinition)
  await makePool(plane, name)
}

/** Waits for the API to take it. */
export async function makePool(plane: ControlPlane, name: string): Promise<void> {
  const pool = {
    apiVersion: 'apps.openyurt.io/v1beta2',
    kind: 'NodePool',
    metadata: { name },
    spec: { type: 'Edge', hostNetwork: true },
  }
  await until('the API to serve pools', async () =>
    [201, 409].includes((await plane.admin.post(pools, pool)).status),
  )
}
