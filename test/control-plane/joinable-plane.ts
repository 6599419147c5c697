import { readFileSync } from 'node:fs'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { listAt, optionalTextAt, textAt } from '../../src/api/kube/json-at.ts'
import { hashOfPublicKey } from '../../src/config/bootstrap.ts'
import type { Scope } from '../kit/cluster/workspace.ts'
import { type ControlPlane, startControlPlane } from '../kit/control-plane.ts'
import { clusterInfoOf } from '../kit/joinable.ts'
import { until } from '../kit/until.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const bootstrappers = 'system:bootstrappers:kubeadm:default-node-token'

/** The one that the control plane has. */
const joinToken = 'abcdef.0123456789abcdef'

/** A control plane that nodes can join with a token; `flags` are for its controller manager. */
export async function startJoinablePlane(
  t: Scope,
  ...flags: readonly string[]
): Promise<ControlPlane> {
  const plane = await startControlPlane(t, {
    controllerManager: true,
    controllerManagerFlags: ['--controllers=bootstrapsigner,tokencleaner', ...flags],
    apiserverFlags: ['--enable-bootstrap-token-auth=true'],
  })
  await makeJoinable(plane)
  await addToken(plane, joinToken)
  return plane
}

interface JoinBy {
  readonly token?: string
  /** Of the public key of its authority. */
  readonly hash?: string
}

/** How a node or hub is told to join it. */
export const joinFlags = (
  { pki }: ControlPlane,
  {
    token = joinToken,
    hash = hashOfPublicKey(readFileSync(pki.ca.certificate, 'utf8')),
  }: JoinBy = {},
): readonly string[] => [`--join-token=${token}`, `--discovery-token-ca-cert-hash=${hash}`]

/** What `kubeadm init` gives a cluster, so that nodes can join it. */
async function makeJoinable({ admin, pki }: ControlPlane): Promise<void> {
  const made = async (path: string, object: JsonObject): Promise<void> => {
    const { status, body } = await admin.post(path, object)
    if (status !== 201) throw new Error(`${path}: ${status} ${body.toString()}`)
  }
  const kubePublic = '/namespaces/kube-public'
  await until('kube-public to be there', async () => {
    return (await admin.get(`/api/v1${kubePublic}`)).status === 200
  })
  const metadata = { name: 'cluster-info' }
  const kubeconfig = clusterInfoOf(readFileSync(pki.ca.certificate, 'utf8'))
  await made(`/api/v1${kubePublic}/configmaps`, { metadata, data: { kubeconfig } })
  await made(`${rbac}${kubePublic}/roles`, {
    metadata,
    rules: [
      {
        apiGroups: [''],
        resources: ['configmaps'],
        resourceNames: ['cluster-info'],
        verbs: ['get'],
      },
    ],
  })
  const apiGroup = 'rbac.authorization.k8s.io'
  await made(`${rbac}${kubePublic}/rolebindings`, {
    metadata,
    roleRef: { apiGroup, kind: 'Role', name: 'cluster-info' },
    subjects: [{ apiGroup, kind: 'User', name: 'system:anonymous' }],
  })
  const approval = 'system:certificates.k8s.io:certificatesigningrequests'
  for (const [role, group] of [
    ['system:node-bootstrapper', bootstrappers],
    [`${approval}:nodeclient`, bootstrappers],
    [`${approval}:selfnodeclient`, 'system:nodes'],
  ] as const) {
    await made(`${rbac}/clusterrolebindings`, {
      metadata: { name: `test:${role.split(':').at(-1)}` },
      roleRef: { apiGroup, kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup, kind: 'Group', name: group }],
    })
  }
}

/** Makes a bootstrap token, and waits until cluster-info is signed with it. */
export async function addToken({ admin }: ControlPlane, token: string): Promise<void> {
  const [id = '', secret = ''] = token.split('.')
  await admin.post('/api/v1/namespaces/kube-system/secrets', {
    metadata: { name: `bootstrap-token-${id}` },
    type: 'bootstrap.kubernetes.io/token',
    stringData: {
      'token-id': id,
      'token-secret': secret,
      'usage-bootstrap-authentication': 'true',
      'usage-bootstrap-signing': 'true',
      'auth-extra-groups': bootstrappers,
    },
  })
  await until('cluster-info to be signed', async () => {
    const { body } = await admin.get('/api/v1/namespaces/kube-public/configmaps/cluster-info')
    return optionalTextAt(JSON.parse(body.toString()) as JsonObject, 'data', `jws-kubeconfig-${id}`)
  })
}

/** By whom certificates were requested, in order (of seconds). */
export async function requestersOf({ admin }: ControlPlane): Promise<readonly string[]> {
  const { body } = await admin.get('/apis/certificates.k8s.io/v1/certificatesigningrequests')
  const madeAt = (request: Json): number =>
    Date.parse(textAt(request, 'metadata', 'creationTimestamp'))
  return listAt(JSON.parse(body.toString()) as JsonObject, 'items')
    .toSorted((a, b) => madeAt(a) - madeAt(b))
    .map((each) => textAt(each, 'spec', 'username'))
}
