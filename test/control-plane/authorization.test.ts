import t from 'tap'
import type { Json } from '../../src/api/kube/json.ts'
import { accountToken } from './account-token.ts'
import type { ApiClient } from '../kit/cluster/api-client.ts'
import { startHubProcess } from '../kit/cluster/hub-process.ts'
import { Client } from '../kit/client.ts'
import {
  noControlPlane,
  nodeSubject,
  startControlPlane,
  type ControlPlane,
} from '../kit/control-plane.ts'
import { until } from '../kit/until.ts'

t.setTimeout(300_000)

const skip = noControlPlane() ?? false

const nodeName = 'edge-1'
const group = 'rbac.authorization.k8s.io'
const rbac = `/apis/${group}/v1`

async function create(admin: ApiClient, path: string, object: Json): Promise<void> {
  const { status, body } = await admin.post(path, object)
  if (status !== 201) throw new Error(`${path}: ${status} ${body.toString()}`)
}

void t.test(
  'a caller gets the API server’s denials offline',
  { skip, timeout: 300_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    await create(plane.admin, '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'plant' },
    })
    const robot = await withdrawnFrom(plane, 'plant')
    await plane.first.daemon.kill()
    // The hub was killed as well, and knows of the denials what is on the disk.
    await robot.restart()
    for (const [path, status] of robot.expected) {
      t.equal((await robot.client.get(path)).status, status, path)
    }
  },
)

/**
 * A caller at a hub after a role of it was taken away, and what it is to be answered without the
 * API server.
 */
async function withdrawnFrom(plane: ControlPlane, of: string) {
  const { admin } = plane
  const hub = await startHubProcess(plane.workspace, {
    servers: [plane.url],
    kubeconfig: plane.kubeconfig(nodeSubject(nodeName)),
    nodeName,
    flags: ['--cache-components=*'],
  })
  const token = await accountToken(admin, 'robot', of)
  const client = new Client({ url: hub.url, component: 'robot', token })
  const subjects = [{ kind: 'ServiceAccount', name: 'robot', namespace: of }]
  const secrets = `/api/v1/namespaces/${of}/secrets`
  const configMaps = `/api/v1/namespaces/${of}/configmaps`
  for (const resource of ['secrets', 'configmaps']) {
    const rule = { verbs: ['list'], apiGroups: [''], resources: [resource] }
    const metadata = { name: `robot-${resource}`, namespace: of }
    const roleRef = { apiGroup: group, kind: 'Role', name: metadata.name }
    await create(admin, `${rbac}/namespaces/${of}/roles`, {
      apiVersion: `${group}/v1`,
      kind: 'Role',
      metadata,
      rules: [rule],
    })
    await create(admin, `${rbac}/namespaces/${of}/rolebindings`, {
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef,
      subjects,
    })
  }
  const isAnswered = (path: string, status: number): Promise<unknown> =>
    until(`${status} to ${path}`, async () => (await client.get(path)).status === status)
  await isAnswered(secrets, 200)
  await isAnswered(configMaps, 200)
  await admin.send('DELETE', `${rbac}/namespaces/${of}/rolebindings/robot-secrets`)
  await isAnswered(secrets, 403)
  const restart = async (): Promise<void> => {
    await hub.daemon.kill()
    await hub.daemon.start()
  }
  const expected: readonly (readonly [path: string, status: number])[] = [
    [secrets, 503],
    [configMaps, 200],
    [`${configMaps}/none`, 404],
    [`${secrets}/any`, 503],
    ['/api/v1/secrets', 503],
  ]
  return { client, expected, restart }
}
