import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectTls } from 'node:tls'
import t, { type Test } from 'tap'
import { newKey, signingRequest } from '../../src/certificates/signing-request.ts'
import { connect } from '../../src/cluster/api/connect.ts'
import { apiInformer } from '../../src/cluster/api/informer.ts'
import { ServingCertificateApprover } from '../../src/cluster/certificates/approver.ts'
import { nodeFacts, type NodeFacts } from '../../src/cluster/controller/node-facts.ts'
import { roles } from '../../src/cluster/install/roles.ts'
import { readClusterConfig } from '../../src/config/cluster-config.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt } from '../../src/api/kube/json-at.ts'
import {
  noControlPlane,
  nodeSubject,
  startControlPlane,
  type ControlPlane,
} from '../kit/control-plane.ts'
import { ApiClient } from '../kit/cluster/api-client.ts'
import { until } from '../kit/until.ts'
import { settled } from '../kit/settled.ts'
import { startNodeHub } from './node.ts'

t.setTimeout(300_000)

const own = { namespace: 'nodehub-system', name: 'nodehub-cluster' }
const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests'

/** Roles and their bindings, as `nodehub manifests --part cluster` prints them. */
async function allow({ admin }: ControlPlane): Promise<void> {
  const installation = {
    ...own,
    image: 'none',
    admission: 'webhooks',
    podHostNetwork: false,
  } as const
  for (const object of roles(installation)) {
    const role = JSON.parse(JSON.stringify(object)) as JsonObject
    const namespace = textAt(role, 'metadata', 'namespace')
    // Its own does not exist here.
    if (namespace === own.namespace) continue
    const scope = namespace === '' ? '' : `/namespaces/${namespace}`
    const collection = `${textAt(role, 'kind').toLowerCase()}s`
    await admin.post(`/apis/rbac.authorization.k8s.io/v1${scope}/${collection}`, role)
  }
}

async function addNode({ admin }: ControlPlane, name: string, address: string): Promise<void> {
  await admin.post('/api/v1/nodes', { metadata: { name } })
  const status = { addresses: [{ type: 'InternalIP', address }] }
  await admin.send(
    'PATCH',
    `/api/v1/nodes/${name}/status`,
    JSON.stringify({ status }),
    'application/merge-patch+json',
  )
}

/** Makes a request for a node; by default as that node. */
async function ask(
  plane: ControlPlane,
  nodeName: string,
  name: string,
  { as = plane.client(nodeSubject(nodeName)), ipAddresses = ['169.254.2.1'] } = {},
): Promise<void> {
  const request = await signingRequest(newKey(), {
    ...nodeSubject(nodeName),
    organizations: ['system:nodes'],
    dnsNames: ['kubernetes', 'kubernetes.default.svc'],
    ipAddresses,
  })
  const { status, body } = await as.post(requests, {
    metadata: { name },
    spec: {
      request: Buffer.from(request).toString('base64'),
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
    },
  })
  if (status !== 201) throw new Error(body.toString())
}

const read = async ({ admin }: ControlPlane, name: string): Promise<JsonObject> =>
  JSON.parse((await admin.get(`${requests}/${name}`)).body.toString()) as JsonObject

const decided = (plane: ControlPlane, name: string): Promise<string> =>
  until(`${name} to be decided`, async () => {
    const [condition] = listAt(await read(plane, name), 'status', 'conditions')
    return (
      condition !== undefined && `${textAt(condition, 'type')}: ${textAt(condition, 'message')}`
    )
  })

/** The part of `nodehub cluster` that decides about requests of hubs. */
async function startApprover(t: Test, plane: ControlPlane) {
  const kubeconfig = plane.kubeconfig({
    commonName: `system:serviceaccount:${own.namespace}:${own.name}`,
  })
  const readFile = (path: string): string => readFileSync(path, 'utf8')
  const argv = [`--kubeconfig=${kubeconfig}`, '--hub-cert-node-cidrs=10.0.0.0/24']
  const result = readClusterConfig({ argv, env: {}, readFile })
  if ('mistakes' in result) throw new Error(result.mistakes.join('\n'))
  const connected = await connect(result.config)
  t.teardown(() => connected[Symbol.asyncDispose]())
  const { api } = connected
  const nodes = apiInformer<NodeFacts>(api, { path: '/api/v1/nodes', transform: nodeFacts })
  t.teardown(() => nodes[Symbol.asyncDispose]())
  const failures: unknown[] = []
  const approver = new ServingCertificateApprover({
    api,
    term: new AbortController().signal,
    rules: result.config.hubCertificates,
    nodes: nodes.items,
    nodesListed: nodes.listed,
    onFailure: (cause) => failures.push(cause),
  })
  t.teardown(() => approver[Symbol.asyncDispose]())
  return { approver, failures }
}

void t.test(
  'a node gets the certificate of its hub from a real cluster, and no other one',
  { skip: noControlPlane() ?? false },
  async (t) => {
    const plane = await startControlPlane(t, { controllerManager: true })
    await allow(plane)
    await addNode(plane, 'edge-1', '10.0.0.1')
    await addNode(plane, 'edge-2', '10.0.0.2')
    const { approver, failures } = await startApprover(t, plane)

    const service = JSON.parse(
      (await plane.admin.get('/api/v1/namespaces/default/services/kubernetes')).body.toString(),
    ) as JsonObject
    const serviceAddress = textAt(service, 'spec', 'clusterIP')

    await ask(plane, 'edge-1', 'nodehub-1', {
      ipAddresses: ['169.254.2.1', '10.0.0.1', serviceAddress],
    })
    t.match(await decided(plane, 'nodehub-1'), /^Approved/)
    const certificate = await until('the certificate', async () => {
      const text = textAt(await read(plane, 'nodehub-1'), 'status', 'certificate')
      return text !== '' && new X509Certificate(Buffer.from(text, 'base64'))
    })
    const ca = new X509Certificate(readFileSync(plane.pki.ca.certificate))
    t.ok(certificate.verify(ca.publicKey))
    t.equal(certificate.checkIP('169.254.2.1'), '169.254.2.1')
    t.equal(certificate.checkHost('kubernetes.default.svc'), 'kubernetes.default.svc')

    await ask(plane, 'edge-1', 'nodehub-2', { as: plane.admin })
    t.match(await decided(plane, 'nodehub-2'), /^Denied: .*who made it is no node/)
    await ask(plane, 'edge-2', 'nodehub-3', { ipAddresses: ['10.0.0.1'] })
    t.match(await decided(plane, 'nodehub-3'), /^Denied: .*10\.0\.0\.1 is no address of the node/)
    await ask(plane, 'edge-1', 'csr-of-kubelet')
    await settled(approver)
    t.strictSame(listAt(await read(plane, 'csr-of-kubelet'), 'status', 'conditions'), [])
    t.strictSame(failures, [])

    const hub = await startNodeHub(plane, {
      flags: ['--hub-cert-signer=kubernetes.io/kubelet-serving'],
    })
    const inPod = new ApiClient(hub.secureUrl, {
      ca: plane.pki.ca.certificate,
      credentials: plane.credentials(nodeSubject('edge-1')),
    })
    await until('a hub that a pod trusts', async () => (await inPod.get('/livez')).status === 200)
    const { hostname, port } = new URL(hub.secureUrl)
    const socket = connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false })
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    t.equal(socket.getPeerX509Certificate()?.checkIP(serviceAddress), serviceAddress)
  },
)
