import { BlockList } from 'node:net'
import t from 'tap'
import { newKey, signingRequest } from '../../../src/certificates/signing-request.ts'
import {
  ServingCertificateApprover,
  type ApproverOptions,
} from '../../../src/cluster/certificates/approver.ts'
import { nodeFacts, type NodeFacts } from '../../../src/cluster/controller/node-facts.ts'
import type { GVR } from '../../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { listAt, textAt } from '../../../src/api/kube/json-at.ts'
import { services } from '../../../src/api/kube/resources.ts'
import { service } from '../../kit/cloud.ts'
import { startTestCluster, type TestCluster } from '../../kit/cluster-api.ts'
import { until } from '../../kit/until.ts'
import type { Teardown } from '../../kit/wire/wire.ts'
import { settled } from '../../kit/settled.ts'

const requests: GVR = {
  group: 'certificates.k8s.io',
  version: 'v1',
  resource: 'certificatesigningrequests',
}

const signer = 'kubernetes.io/kubelet-serving'

const request = async (
  name: string,
  nodeName: string,
  spec: JsonObject = {},
  status?: JsonObject,
): Promise<JsonObject> => {
  const text = await signingRequest(newKey(), {
    commonName: `system:node:${nodeName}`,
    organizations: ['system:nodes'],
    ipAddresses: ['169.254.2.1'],
  })
  return {
    metadata: { name },
    spec: {
      signerName: signer,
      request: Buffer.from(text).toString('base64'),
      usages: ['digital signature', 'server auth'],
      username: 'system:node:edge-1',
      groups: ['system:nodes', 'system:authenticated'],
      ...spec,
    },
    ...(status && { status }),
  }
}

const knownNode = (name: string): [string, NodeFacts] => [name, nodeFacts({ metadata: { name } })]

function startApprover(t: Teardown, { api }: TestCluster, options: Partial<ApproverOptions> = {}) {
  const decided: string[] = []
  const approver = new ServingCertificateApprover({
    api,
    term: new AbortController().signal,
    rules: {
      signers: [signer],
      organizations: [],
      names: [],
      addresses: ['169.254.2.1'],
      nodeNetworks: new BlockList(),
    },
    nodes: new Map([knownNode('edge-1')]),
    nodesListed: Promise.resolve(),
    onDecided: (name, verdict) => decided.push(`${name} ${verdict}`),
    ...options,
  })
  t.teardown(() => approver[Symbol.asyncDispose]())
  return { approver, decided }
}

const conditions = ({ sandbox }: TestCluster, name: string): string[] =>
  listAt(sandbox.get(requests, name), 'status', 'conditions').map(
    (each) => `${textAt(each, 'type')}: ${textAt(each, 'message')}`,
  )

const approved = 'Approved: nodehub-cluster: a node asks for the serving certificate of its hub'

void t.test('existing and new CSRs of hubs are decided', async (t) => {
  const cluster = await startTestCluster(t)
  cluster.sandbox.create(requests, await request('nodehub-1', 'edge-1'))
  const { approver, decided } = startApprover(t, cluster)
  await settled(approver)
  t.strictSame(conditions(cluster, 'nodehub-1'), [approved])
  cluster.sandbox.create(requests, await request('nodehub-2', 'edge-2'))
  await until('the second to be decided', () => decided.length === 2)
  t.strictSame(conditions(cluster, 'nodehub-2'), [
    'Denied: nodehub-cluster: it is not for the node that made it',
  ])
  t.strictSame(decided, ['nodehub-1 approved', 'nodehub-2 denied'])
})

void t.test('CSRs of others or decided ones are ignored', async (t) => {
  const cluster = await startTestCluster(t)
  const others = [
    await request('csr-abcde', 'edge-1'),
    await request('nodehub-client', 'edge-1', {
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    }),
    await request(
      'nodehub-denied',
      'edge-1',
      {},
      { conditions: [{ type: 'Denied', status: 'True', message: 'by hand' }] },
    ),
    await request(
      'nodehub-approved',
      'edge-2',
      {},
      { conditions: [{ type: 'Approved', status: 'True', message: 'by yurt-manager' }] },
    ),
  ]
  for (const other of others) cluster.sandbox.create(requests, other)
  const { approver, decided } = startApprover(t, cluster)
  await settled(approver)
  t.strictSame(decided, [])
  t.strictSame(conditions(cluster, 'csr-abcde'), [])
  t.strictSame(conditions(cluster, 'nodehub-client'), [])
  t.strictSame(conditions(cluster, 'nodehub-denied'), ['Denied: by hand'])
  t.strictSame(conditions(cluster, 'nodehub-approved'), ['Approved: by yurt-manager'])
})

void t.test('a node that registers after its request is waited for', async (t) => {
  const cluster = await startTestCluster(t)
  cluster.sandbox.create(requests, await request('nodehub-1', 'edge-1'))
  const nodes = new Map<string, NodeFacts>()
  const { approver, decided } = startApprover(t, cluster, { nodes, againMs: 10 })
  await settled(approver)
  t.strictSame(conditions(cluster, 'nodehub-1'), [])
  nodes.set(...knownNode('edge-1'))
  await until('the request to be decided', () => decided.length === 1)
  t.strictSame(conditions(cluster, 'nodehub-1'), [approved])
})

void t.test('a CSR for a ClusterIP waits until that can be read', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  sandbox.create(services, service('kubernetes', '10.96.0.1'))
  const text = await signingRequest(newKey(), {
    commonName: 'system:node:edge-1',
    organizations: ['system:nodes'],
    ipAddresses: ['169.254.2.1', '10.96.0.1'],
  })
  sandbox.create(
    requests,
    await request('nodehub-1', 'edge-1', { request: Buffer.from(text).toString('base64') }),
  )
  const failed = Promise.withResolvers<unknown>()
  const refused = sandbox.faults.fail(403, ({ path }) => path.endsWith('/services/kubernetes'))
  const { decided } = startApprover(t, cluster, {
    onFailure: (cause) => failed.resolve(cause),
  })
  t.match(await failed.promise, /403/)
  t.strictSame(conditions(cluster, 'nodehub-1'), [])
  refused[Symbol.dispose]()
  await until('the request to be decided', () => decided.length === 1)
  t.strictSame(conditions(cluster, 'nodehub-1'), [approved])
})

void t.test('CSRs wait until nodes are listed, and only the leader decides', async (t) => {
  const cluster = await startTestCluster(t)
  cluster.sandbox.create(requests, await request('nodehub-1', 'edge-1'))
  const listed = Promise.withResolvers<void>()
  const first = startApprover(t, cluster, { nodesListed: listed.promise })
  const second = startApprover(t, cluster, { term: AbortSignal.abort() })
  await settled(second.approver)
  t.strictSame(conditions(cluster, 'nodehub-1'), [])
  listed.resolve()
  await settled(first.approver)
  t.strictSame(conditions(cluster, 'nodehub-1'), [approved])
  t.strictSame(second.decided, [])
})

void t.test('a concurrent decision is not overruled', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  sandbox.create(requests, await request('nodehub-1', 'edge-1'))
  const api = await cluster.connect()
  const patch = api.patch.bind(api)
  let once = true
  api.patch = (...write) => {
    const object = sandbox.get(requests, 'nodehub-1')
    if (once && object) {
      once = false
      const denied = { type: 'Denied', status: 'True', message: 'by hand' }
      sandbox.update(requests, { ...object, status: { conditions: [denied] } }, 'status')
    }
    return patch(...write)
  }
  const { approver, decided } = startApprover(t, { ...cluster, api })
  await settled(approver)
  await until('the watch to tell', async () => {
    await settled(approver)
    return conditions(cluster, 'nodehub-1').length > 0
  })
  t.strictSame(conditions(cluster, 'nodehub-1'), ['Denied: by hand'])
  t.strictSame(decided, [])
})
