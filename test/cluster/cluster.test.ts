import { BlockList } from 'node:net'
import t from 'tap'
import { pino, type Logger } from 'pino'
import { request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { once } from 'node:events'
import { ownVersion } from '../../src/base/own-version.ts'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { newKey, signingRequest } from '../../src/certificates/signing-request.ts'
import { startCluster, type Cluster } from '../../src/cluster/cluster.ts'
import type { ClusterConfig } from '../../src/config/cluster-config.ts'
import { nodesFinalizer } from '../../src/cluster/controller/reconcile.ts'
import { giveBack, takeOver } from '../../src/cluster/take-over.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { valueAt, listAt, textAt } from '../../src/api/kube/json-at.ts'
import { nodePoolLabel, nodePools } from '../../src/api/kube/node-pool.ts'
import type { GVR } from '../../src/api/kube/gvk.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import { mostPipelined } from '../../src/http/server/ops.ts'
import {
  defineAdmissionKinds,
  mutatingConfigurations,
  validatingConfigurations,
} from '../kit/admission-kinds.ts'
import { configMaps, nodes, pods, secrets } from '../kit/cloud.ts'
import { until as soon } from '../kit/until.ts'
import { startTestCluster, type TestCluster } from '../kit/cluster-api.ts'
import { dial, type Teardown } from '../kit/wire/wire.ts'

t.setTimeout(300_000)

const deployments: GVR = { group: 'apps', version: 'v1', resource: 'deployments' }
const signingRequests: GVR = {
  group: 'certificates.k8s.io',
  version: 'v1',
  resource: 'certificatesigningrequests',
}
const configFor = (
  { kubeconfig }: TestCluster,
  rest: Partial<ClusterConfig> = {},
): ClusterConfig => ({
  access: { kind: 'kubeconfig', file: kubeconfig },
  namespace: 'kube-system',
  webhooks: {
    address: '127.0.0.1',
    port: 0,
    service: 'nodehub-cluster',
    serving: { kind: 'secret', name: 'nodehub-cluster-certificates' },
    clientCa: undefined,
    podHostNetwork: false,
  },
  election: { name: 'nodehub-cluster', leaseMs: 15_000, renewMs: 10_000, retryMs: 200 },
  hubCertificates: {
    signers: [],
    organizations: [],
    names: [],
    addresses: [],
    nodeNetworks: new BlockList(),
  },
  takeOver: false,
  workers: 8,
  ops: { address: '127.0.0.1', port: 0 },
  logLevel: 'info',
  shutdownGracePeriodMs: 1000,
  ...rest,
})

async function started(
  t: Teardown,
  cluster: TestCluster,
  rest: Partial<ClusterConfig> = {},
  log: Logger = pino({ level: 'silent' }),
): Promise<Cluster & { taken: string[] }> {
  const taken: string[] = []
  const running = await startCluster(configFor(cluster, rest), {
    log,
    onTaken: (line) => taken.push(line),
  })
  t.teardown(() => running[Symbol.asyncDispose]())
  return { ...running, taken }
}

async function prepared(t: Teardown): Promise<TestCluster> {
  const cluster = await startTestCluster(t)
  defineAdmissionKinds(cluster.sandbox)
  return cluster
}

/** Waits until what is in the cluster is so. */
const until = (holds: () => boolean | undefined): Promise<boolean> => soon(String(holds), holds)

/** Waits until a sample of the metrics has this value. */
async function reaches({ metrics }: Cluster, sample: string, value: number): Promise<void> {
  let body = ''
  await soon(
    `${sample} ${value}`,
    async () => {
      body = (await metrics.exposition()).body
      return body.includes(`\n${sample} ${value}\n`)
    },
    { seconds: 30, describe: () => body.split('\n').filter((line) => line.startsWith('nodehub_')) },
  )
}

const ours = (path: string): JsonObject => ({
  name: `w${path.replaceAll('/', '.')}`,
  clientConfig: { service: { namespace: 'kube-system', name: 'nodehub-cluster', path } },
  rules: [],
})

void t.test('replicas share a certificate, one leads, and the webhooks trust it', async (t) => {
  const cluster = await prepared(t)
  const { sandbox } = cluster
  sandbox.create(mutatingConfigurations, {
    metadata: { name: 'nodehub-cluster' },
    webhooks: [
      ours('/mutate/nodes'),
      {
        name: 'theirs',
        clientConfig: { service: { namespace: 'x', name: 'y' }, caBundle: 'Zg==' },
      },
    ],
  })
  const replicas = await Promise.all([started(t, cluster), started(t, cluster)])
  const bundleOf = (): string =>
    textAt(sandbox.get(secrets, 'nodehub-cluster-certificates', 'kube-system'), 'data', 'ca.crt')
  const written = (i: number): string =>
    textAt(
      listAt(sandbox.get(mutatingConfigurations, 'nodehub-cluster'), 'webhooks')[i],
      'clientConfig',
      'caBundle',
    )
  await until(() => written(0) === bundleOf())
  t.equal(written(1), 'Zg==', 'what leads elsewhere is left alone')
  t.equal(replicas.filter((each) => each.leads()).length, 1)
  for (const { webhookPort } of replicas) {
    const socket = connect({
      port: webhookPort,
      host: '127.0.0.1',
      servername: 'nodehub-cluster.kube-system.svc',
      ca: Buffer.from(bundleOf(), 'base64').toString(),
    })
    await once(socket, 'secureConnect')
    t.ok(socket.authorized)
    socket.destroy()
  }

  const now = sandbox.get(mutatingConfigurations, 'nodehub-cluster')!
  sandbox.update(mutatingConfigurations, { ...now, webhooks: [ours('/mutate/nodes')] })
  await until(() => written(0) === bundleOf())
  t.pass('a change of another client was reverted')
  const leader = replicas.find((each) => each.leads())!
  const repairs = 'nodehub_cluster_ca_bundle_repairs_total'
  await reaches(leader, `${repairs}{kind="MutatingWebhookConfiguration"}`, 2)
})

void t.test('the ops endpoints answer', async (t) => {
  const cluster = await prepared(t)
  const replica = await started(t, cluster)
  await until(replica.leads)
  const ask = async (path: string) =>
    (await fetch(`http://127.0.0.1:${replica.opsPort}${path}`)).text()
  t.equal(await ask('/healthz'), 'ok')
  t.match(await ask('/readyz?verbose'), /\[\+\]nodepools ok\n\[\+\]certificate ok\n\[ \]leader: /)
  const metrics = await ask('/metrics')
  t.match(metrics, /^nodehub_cluster_leading 1$/m)
  t.match(metrics, /^nodehub_cluster_api_requests_total\{verb="get",code="200"\} [1-9]/m)
  t.match(metrics, /^nodehub_cluster_certificate_expiry_timestamp_seconds [1-9]/m)
  const versions = `version="${ownVersion()}",node="${process.versions.node}"`
  t.match(metrics, `\nnodehub_cluster_build_info{${versions}} 1\n`)
  const client = await dial(t, replica.opsPort)
  client.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(mostPipelined + 1))
  await client.ended
  await reaches(replica, 'nodehub_cluster_connections_cut_total{reason="pipelined"}', 1)
})

void t.test('requests of nodes for their hubs are decided, and counted', async (t) => {
  const cluster = await prepared(t)
  const { sandbox } = cluster
  sandbox.create(nodes, { metadata: { name: 'edge-1' } })
  const commonName = 'system:node:edge-1'
  const request = await signingRequest(newKey(), {
    commonName,
    organizations: ['system:nodes'],
    dnsNames: ['kubernetes'],
  })
  const signer = 'kubernetes.io/kubelet-serving'
  for (const [name, groups] of [
    ['nodehub-1', ['system:nodes']],
    ['nodehub-2', []],
  ] as const) {
    sandbox.create(signingRequests, {
      metadata: { name },
      spec: {
        request: Buffer.from(request).toString('base64'),
        signerName: signer,
        usages: ['digital signature', 'server auth'],
        username: commonName,
        groups,
      },
    })
  }
  const rules = {
    ...configFor(cluster).hubCertificates,
    signers: [signer],
    names: ['kubernetes'],
  }
  const replica = await started(t, cluster, { hubCertificates: rules })
  const metric = (result: string): string =>
    `nodehub_cluster_certificate_requests_total{result="${result}"}`
  await reaches(replica, metric('approved'), 1)
  await reaches(replica, metric('denied'), 1)
  const approval = listAt(sandbox.get(signingRequests, 'nodehub-1'), 'status', 'conditions')
  t.match(approval, [{ type: 'Approved', status: 'True' }])
})

void t.test('pools, nodes and queue have metrics', async (t) => {
  const cluster = await prepared(t)
  const { sandbox } = cluster
  const hostPool = { hostNetwork: true }
  sandbox.create(nodePools, { metadata: { name: 'p' }, spec: { labels: { zone: 'a' } } })
  sandbox.create(nodePools, { metadata: { name: 'h' }, spec: hostPool })
  sandbox.create(nodes, { metadata: { name: 'h-1', labels: { [nodePoolLabel]: 'h' } } })
  sandbox.create(pods, {
    metadata: { name: 'on-the-pod-network', namespace: 'default' },
    spec: { nodeName: 'h-1', containers: [{ name: 'main', image: 'i' }] },
  })
  const replica = await started(t, cluster)
  await reaches(replica, 'nodehub_cluster_label_withheld_nodes', 1)
  await reaches(replica, 'nodehub_cluster_pools', 2)

  const isOf =
    (path: string) =>
    (request: SeenRequest): boolean =>
      request.method === 'PATCH' && request.path === path
  using frozen = sandbox.faults.freeze(isOf('/api/v1/nodes/n-1'))
  sandbox.create(nodes, { metadata: { name: 'n-1', labels: { [nodePoolLabel]: 'p' } } })
  await reaches(replica, 'nodehub_cluster_nodes', 2)
  await reaches(replica, 'nodehub_cluster_queued', 1)
  frozen[Symbol.dispose]()
  await reaches(replica, 'nodehub_cluster_queued', 0)
  t.equal(textAt(sandbox.get(nodes, 'n-1'), 'metadata', 'labels', 'zone'), 'a')
  const writes = (kind: string): string => `nodehub_cluster_writes_total{kind="${kind}"}`
  await reaches(replica, writes('node'), 2)
  await reaches(replica, writes('pool'), 2)

  for (const [name, status, counted] of [
    ['n-2', 409, 'nodehub_cluster_conflicts_total{kind="node"}'],
    ['n-3', 403, 'nodehub_cluster_failures_total{reason="controller"}'],
  ] as const) {
    using _refused = sandbox.faults.fail(status, isOf(`/api/v1/nodes/${name}`))
    sandbox.create(nodes, { metadata: { name, labels: { [nodePoolLabel]: 'p' } } })
    await reaches(replica, counted, 1)
  }
})

void t.test('a failing part is counted and retried', async (t) => {
  const cluster = await prepared(t)
  const { sandbox } = cluster
  const refused = sandbox.faults.fail(403, ({ path }) => path.includes('/leases'))
  const replica = await started(t, cluster)
  await soon('a failure', async () =>
    /^nodehub_cluster_failures_total\{reason="election"\} [1-9]/m.test(
      (await replica.metrics.exposition()).body,
    ),
  )
  t.notOk(replica.leads())
  refused[Symbol.dispose]()
  await until(replica.leads)
})

void t.test('with --client-ca a review without a client certificate gets 401', async (t) => {
  const cluster = await prepared(t)
  const authority = await CertificateAuthority.create('clients')
  const clientCa = join(t.testdir({ 'ca.crt': authority.certificate }), 'ca.crt')
  const { webhooks } = configFor(cluster)
  const replica = await started(t, cluster, { webhooks: { ...webhooks, clientCa } })
  const { certificate: cert, key } = await authority.issue({ commonName: 'api', usage: 'client' })
  const asked = async (shown: object): Promise<number | undefined> => {
    const sent = request({
      host: '127.0.0.1',
      port: replica.webhookPort,
      path: '/mutate/nodes',
      method: 'POST',
      rejectUnauthorized: false,
      agent: false,
      ...shown,
    })
    sent.end('{}')
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    answer.resume()
    return answer.statusCode
  }
  t.equal(await asked({}), 401)
  await reaches(replica, 'nodehub_cluster_reviews_refused_total{reason="unauthenticated"}', 1)
  t.equal(await asked({ cert, key }), 400, 'it is read, and is no review')
})

const foreign = (name: string, resource: string): JsonObject => ({
  name,
  clientConfig: {
    service: { namespace: 'kube-system', name: 'yurt-manager-webhook-service', path: `/${name}` },
    caBundle: 'b2xk',
  },
  rules: [{ resources: [resource] }],
})

/**
 * As the chart of yurt-manager and its first start leave it: a webhook of a controller that does
 * not run is in the template alone.
 */
function withYurtManager({ sandbox }: TestCluster): { before: () => unknown } {
  const mutating = [
    foreign('mutate.core.v1.node.openyurt.io', 'nodes'),
    foreign('mutate.gateway.v1beta1.raven.openyurt.io', 'gateways'),
    foreign('mutate.core.v1.pod.openyurt.io', 'pods'),
  ]
  const validating = [foreign('validate.nodepool', 'nodepools'), foreign('validate.pod', 'pods')]
  sandbox.create(mutatingConfigurations, {
    metadata: {
      name: 'yurt-manager-mutating-webhook-configuration',
      annotations: {
        'yurt-manager-template': JSON.stringify([
          ...mutating,
          foreign('mutate.nodepool', 'nodepools'),
        ]),
      },
    },
    webhooks: mutating,
  })
  sandbox.create(validatingConfigurations, {
    metadata: { name: 'yurt-manager-validating-webhook-configuration' },
    webhooks: validating,
  })
  sandbox.create(deployments, {
    metadata: { name: 'yurt-manager', namespace: 'kube-system' },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'y' } },
      template: {
        metadata: { labels: { app: 'y' } },
        spec: {
          containers: [
            { name: 'yurt-manager', image: 'y', args: ['--v=2', '--controllers=-csrapprover,*'] },
          ],
        },
      },
    },
  })
  const look = () => ({
    mutating: namesIn(
      sandbox.get(mutatingConfigurations, 'yurt-manager-mutating-webhook-configuration'),
    ),
    validating: namesIn(
      sandbox.get(validatingConfigurations, 'yurt-manager-validating-webhook-configuration'),
    ),
    template: (
      JSON.parse(
        textAt(
          sandbox.get(mutatingConfigurations, 'yurt-manager-mutating-webhook-configuration'),
          'metadata',
          'annotations',
          'yurt-manager-template',
        ),
      ) as JsonObject[]
    )
      .map((each) => textAt(each, 'name'))
      .toSorted(),
    args: valueAt(
      listAt(
        sandbox.get(deployments, 'yurt-manager', 'kube-system'),
        'spec',
        'template',
        'spec',
        'containers',
      )[0],
      'args',
    ),
  })
  return { before: look }
}

const namesIn = (configuration: JsonObject | undefined): string[] =>
  listAt(configuration, 'webhooks')
    .map((each) => textAt(each, 'name'))
    .toSorted()

void t.test(
  'beside a yurt-manager it does not start, unless it takes over, and it can give back',
  async (t) => {
    const cluster = await prepared(t)
    const { sandbox } = cluster
    const { before: look } = withYurtManager(cluster)
    const before = look()
    const refused = await started(t, cluster).catch((error: unknown) => error)
    t.match(refused, {
      code: 'BESIDE_YURT_MANAGER',
      conflicts: [
        'webhook mutate.core.v1.node.openyurt.io of yurt-manager-mutating-webhook-configuration',
        'webhook mutate.core.v1.pod.openyurt.io of yurt-manager-mutating-webhook-configuration',
        'webhook mutate.nodepool of yurt-manager-mutating-webhook-configuration',
        'webhook validate.nodepool of yurt-manager-validating-webhook-configuration',
        'controller nodepool-controller of Deployment kube-system/yurt-manager, which restarts',
      ],
    })
    t.strictSame(look(), before, 'and it has touched nothing')

    const running = await started(t, cluster, { takeOver: true })
    t.equal(running.taken.length, 5)
    t.strictSame(look(), {
      mutating: ['mutate.gateway.v1beta1.raven.openyurt.io'],
      validating: ['validate.pod'],
      template: ['mutate.gateway.v1beta1.raven.openyurt.io'],
      args: ['--v=2', '--controllers=-csrapprover,*,-nodepool-controller'],
    })
    t.ok(sandbox.get(configMaps, 'nodehub-cluster-taken-over', 'kube-system'))
    await running[Symbol.asyncDispose]()
    const second = await started(t, cluster)
    await second[Symbol.asyncDispose]()
    t.pass('what was taken is not in the way of the next start')

    sandbox.create(nodePools, {
      metadata: { name: 'p', finalizers: ['nodepool.openyurt.io/nodes'] },
    })
    t.equal((await giveBack(cluster.api, 'kube-system')).length, 6)
    t.strictSame(look(), before)
    t.strictSame(valueAt(sandbox.get(nodePools, 'p'), 'metadata', 'finalizers') ?? [], [])
    t.notOk(sandbox.get(configMaps, 'nodehub-cluster-taken-over', 'kube-system'))
    t.strictSame(await giveBack(cluster.api, 'kube-system'), [])
  },
)

void t.test('giving back is retried after a conflict', async (t) => {
  const cluster = await prepared(t)
  const { sandbox } = cluster
  const { before: look } = withYurtManager(cluster)
  const before = look()
  await takeOver(cluster.api, 'kube-system')
  let first: SeenRequest | undefined
  using _busy = sandbox.faults.fail(409, (request) => {
    if (request.method !== 'PUT' || !request.path.endsWith('/deployments/yurt-manager'))
      return false
    first ??= request
    return request === first
  })
  t.equal((await giveBack(cluster.api, 'kube-system')).length, 5)
  t.ok(first, 'a write of another client came first')
  t.strictSame(look(), before)
})

void t.test('a pool that is written meanwhile is given back without its finalizer', async (t) => {
  const { api, sandbox } = await prepared(t)
  for (const name of ['p', 'q'])
    sandbox.create(nodePools, { metadata: { name, finalizers: [nodesFinalizer] }, spec: {} })
  let first: SeenRequest | undefined
  using _busy = sandbox.faults.fail(409, (request) => {
    const { method, path, query } = request
    if (method !== 'PATCH' || !path.endsWith('/nodepools/q') || query.has('dryRun')) return false
    first ??= request
    return request === first
  })
  const said = await giveBack(api, 'kube-system')
  t.strictSame(said.toSorted(), ['finalizer of NodePool p', 'finalizer of NodePool q'])
  t.ok(first, 'a write of another client came first')
  t.strictSame(
    sandbox.list(nodePools).flatMap(({ metadata }) => metadata['finalizers'] ?? []),
    [],
  )
})
