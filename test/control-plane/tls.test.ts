import { mkdirSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { startHubProcess, type HubProcess } from '../kit/cluster/hub-process.ts'
import { until } from '../kit/until.ts'
import {
  type ControlPlane,
  noControlPlane,
  nodeSubject,
  startControlPlane,
} from '../kit/control-plane.ts'
import { noKubelet, startKubelet } from '../kit/kubelet.ts'
import { findKubectls } from './kubectl/find.ts'
import { Session } from './kubectl/session.ts'
import { talk, talker, talkerName } from './kubectl/story.ts'
import { nodeReady, podRunning } from './seen.ts'

t.setTimeout(240_000)

const [kubectl] = findKubectls().slice(-1)
const skip = noControlPlane() ?? (kubectl === undefined ? 'no kubectl on PATH' : false)
const nodeName = 'edge-1'
const namespace = 'default'
const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`

void t.test(
  'over TLS kubectl has the identity of its token or certificate, as at an API server',
  { skip, timeout: 220_000 },
  async (t) => {
    const plane = await startControlPlane(t, { controllerManager: true })
    const hub = await startHubProcess(plane.workspace, {
      servers: [plane.url],
      kubeconfig: plane.kubeconfig(nodeSubject(nodeName)),
      nodeName,
    })
    await makeOperator(plane)
    const [first, next] = [await tokenOf(plane, 3600), await tokenOf(plane, 7200)]
    const as = (user: object, name: string): Session => session(plane, hub, name, user)

    await t.test('a service account reads and writes with its token', async (t) => {
      const operator = as({ token: first }, 'operator')
      const said = async (...args: string[]) => (await operator.run(args)).stdout
      t.match(await said('auth', 'whoami'), /system:serviceaccount:\S+:operator/)
      t.match(await said('create', 'configmap', 'made', '--from-literal=a=b'), 'made created')
      t.match(await said('get', 'configmaps'), /^made /m)
    })

    await t.test('the kubelet’s certificate is the node, another one is refused', async (t) => {
      const certificateOf = (subject: Parameters<ControlPlane['credentials']>[0]) => {
        const { certificate, key } = plane.credentials(subject)
        return { 'client-certificate': certificate, 'client-key': key }
      }
      const node = as(certificateOf(nodeSubject(nodeName)), 'node')
      t.match((await node.run(['auth', 'whoami'])).stdout, `system:node:${nodeName}`)
      const other = as(certificateOf(nodeSubject('edge-2')), 'other')
      t.match((await other.run(['get', 'services'])).stderr, /Forbidden/)
    })

    await t.test(
      'logs, exec, port-forward and a watch',
      { skip: noKubelet() ?? false },
      async (t) => {
        await startTalker(t, plane)
        const direct = session(plane, undefined, 'direct', { token: first })
        const through = as({ token: first }, 'operator')
        await until('the log to be long enough', async () =>
          (await direct.run(['logs', talkerName])).stdout.includes('line 2'),
        )
        t.strictSame(await talk(through), await talk(direct))
        const { said } = await through.runUntil(
          ['get', 'configmaps', '--watch', '-o', 'name'],
          (stdout) => stdout.includes('configmap/made'),
          async () => undefined,
        )
        t.match(said, 'configmap/made')
      },
    )

    await t.test(
      'offline, the account’s next token is accepted, and a forged one is not',
      async (t) => {
        await until('the hub to know the keys', async () => {
          const { stdout } = await as({ token: first }, 'operator').run(['get', 'configmaps'])
          return stdout.includes('made') && (await keysAreKnown(hub))
        })
        await plane.first.daemon.kill()
        const get = (token: string) => as({ token }, 'operator').run(['get', 'configmaps'])
        await until('the cache to answer', async () => (await get(first)).status === 0)
        t.match((await get(next)).stdout, /^made /m)
        const [head, claims, signature = ''] = next.split('.')
        const forged = [head, claims, `${signature.slice(1)}A`].join('.')
        t.match((await get(forged)).stderr, /logged in|Unauthorized/)
      },
    )
  },
)

async function keysAreKnown(hub: HubProcess): Promise<boolean> {
  return hub.daemon.log().includes('the keys of service accounts are known')
}

/** A service account that may do all. */
async function makeOperator({ admin }: ControlPlane): Promise<void> {
  await until('the namespace’s accounts', async () => (await admin.get(accounts)).status === 200)
  await admin.post(accounts, { metadata: { name: 'operator' } })
  await admin.post('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'operator' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name: 'operator', namespace }],
  })
}

async function tokenOf({ admin }: ControlPlane, expirationSeconds: number): Promise<string> {
  const answer = await admin.post(`${accounts}/operator/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds },
  })
  const { status } = answer.json() as unknown as { status: { token: string } }
  return status.token
}

/** A kubectl at the hub, or straight at the API server. */
function session(
  plane: ControlPlane,
  hub: HubProcess | undefined,
  name: string,
  user: object,
): Session {
  const folder = plane.workspace.file(`tls-${name}`)
  mkdirSync(folder, { recursive: true })
  const kubeconfig = `${folder}/kubeconfig`
  const cluster = {
    server: hub?.secureUrl ?? plane.url,
    'certificate-authority': hub?.authority ?? plane.pki.ca.certificate,
  }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  writeFileSync(kubeconfig, JSON.stringify(config), { mode: 0o600 })
  return new Session({ kubectl: kubectl?.path ?? '', kubeconfig, namespace, cacheFolder: folder })
}

/** A node of its own, straight at the API server, with the pod whose log is read. */
async function startTalker(t: Test, plane: ControlPlane): Promise<void> {
  await startKubelet(t, {
    nodeName,
    kubeconfig: plane.kubeconfig(nodeSubject(nodeName)),
    clientCa: plane.pki.ca.certificate,
  })
  await nodeReady(plane.admin, nodeName)
  await plane.admin.post('/api/v1/namespaces/default/pods', talker(nodeName))
  await podRunning(plane.admin, talkerName)
}
