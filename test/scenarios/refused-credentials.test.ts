import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { inspect } from '../../src/cli/inspect/inspect.ts'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { objectOf } from '../kit/client.ts'
import { nodeName, pods, podsOfNode, type CloudServer } from '../kit/cloud.ts'
import {
  startOnlineHub,
  goOffline,
  rootFolder,
  startCloud,
  startTestHub,
  type TestHub,
} from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { until } from '../kit/until.ts'

const lease = {
  kind: 'Lease',
  apiVersion: 'coordination.k8s.io/v1',
  metadata: { name: nodeName, namespace: 'kube-node-lease' },
  spec: { holderIdentity: nodeName },
}
const leaseResource = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' }
const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
const signing = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const request = { kind: 'CertificateSigningRequest', apiVersion: 'certificates.k8s.io/v1' }
const kubelet = {
  commonName: `system:node:${nodeName}`,
  organizations: ['system:nodes'],
  usage: 'client',
} as const

/** No API server here knows it. */
const elsewhere = await CertificateAuthority.create('elsewhere')

interface Shown {
  readonly certificate: string
  readonly key: string
}

/** Puts another certificate where the hub's own is, and has it read. */
function show(hub: TestHub, { certificate, key }: Shown): void {
  writeFileSync(join(hub.rootDir, 'node.crt'), certificate)
  writeFileSync(join(hub.rootDir, 'node.key'), key)
  hub.hub.reconfigure(hub.config)
}

const refusals = (hub: TestHub): string[] =>
  hub.lines.filter((line) => line.includes("an API server does not accept the hub's credentials"))

async function refusedHub(
  t: Teardown,
  shown: Shown,
): Promise<{ cloud: CloudServer; hub: TestHub }> {
  const cloud = await startCloud(t, { tls: true })
  cloud.addPods('a')
  const hub = await startOnlineHub(t, { upstreams: [cloud] })
  await hub.as('kubelet').list(podsOfNode)
  show(hub, shown)
  return { cloud, hub }
}

const readyz = async (hub: TestHub): Promise<{ status: number; text: string }> => {
  const { status, body } = await hub.ops.get('/readyz?verbose')
  return { status, text: body.toString() }
}

void t.test('with an expired certificate the node is answered from the cache', async (t) => {
  const { cloud, hub } = await refusedHub(
    t,
    await elsewhere.issue({ ...kubelet, lifetimeMs: -1_000 }),
  )
  const client = hub.as('kubelet')

  await t.test('lists of any age and consistent ones', async (t) => {
    for (const query of ['', '&resourceVersion=0']) {
      const { answer, names } = await client.list(`${podsOfNode}${query}`)
      t.equal(answer.status, 200)
      t.strictSame(names, ['default/a'])
      t.ok(answer.headers['age'])
    }
  })
  await t.test('an object that is not cached is 503, and never 401', async (t) => {
    const answer = await client.get('/api/v1/namespaces/default/configmaps/x')
    t.match(objectOf(answer), {
      code: 503,
      message: /does not accept the hub's own credentials \(401\)/,
    })
  })
  await t.test('of writes, what a node cannot do without, as offline', async (t) => {
    const created = await client.send(leases, { method: 'POST', body: lease })
    t.equal(created.status, 201)
    const refused = await client.send(signing, { method: 'POST', body: request })
    t.match(objectOf(refused), { code: 503, message: /own credentials/ })
  })
  await t.test('readiness, log and metrics say so', async (t) => {
    const { status, text } = await readyz(hub)
    t.equal(status, 503)
    const why =
      /the hub's client certificate expired \d{4}-\d\d-\d\dT[\d:]+Z \(file .*node\.crt; node clock \d{4}-.*Z\)/
    t.match(text, new RegExp(`^\\[-\\]certificate failed: ${why.source}`, 'm'))
    // What the hub learned from a request is known before the next probe is.
    const probed = `[ ]upstream ${cloud.url} unready, last probe: ${cloud.url} does not accept`
    await until('the probe', async () => (await readyz(hub)).text.includes(probed))
    t.equal((await hub.ops.get('/livez')).status, 200)
    const [line, ...more] = refusals(hub)
    t.match(line, why)
    t.match(line, /"level":"?(error|50)/)
    t.strictSame(more, [])
    t.notMatch(hub.lines.join('\n'), /--part rbac/)
    t.equal(await hub.metric(`nodehub_upstream_credentials_refused{upstream="${cloud.url}"}`), 1)
  })
  await t.test('a watch goes on when the certificate is renewed', async (t) => {
    const { resourceVersion } = await client.list(podsOfNode)
    const watch = await client.watch(podsOfNode, { resourceVersion })
    t.equal(watch.status, 200)
    cloud.touch(pods, 'a', 'default')
    show(hub, cloud.node)
    t.equal((await watch.next())?.type, 'MODIFIED')
    await hub.logged("an API server no longer refuses the hub's credentials")
    await hub.logged('an API server is now healthy')
    const { status, text } = await readyz(hub)
    t.equal(status, 200)
    t.match(text, '[+]certificate ok')
  })
})

void t.test('a caller with a token of its own is not concerned', async (t) => {
  const { cloud, hub } = await refusedHub(t, await elsewhere.issue(kubelet))
  await hub.as('kubelet').list(podsOfNode)
  const token = cloud.sandbox.token('reader')
  const { answer } = await hub.as('reader', { token }).list(podsOfNode)
  t.match(answer, { status: 200, headers: { age: undefined } })
  const bad = await hub.as('reader', { token: 'nonsense' }).get(podsOfNode)
  t.equal(bad.status, 401)
})

void t.test('offline an expired certificate is shown, and the hub stays ready', async (t) => {
  const { cloud, hub } = await refusedHub(
    t,
    await elsewhere.issue({ ...kubelet, lifetimeMs: -1_000 }),
  )
  await goOffline(cloud, hub)
  const { status, text } = await readyz(hub)
  t.equal(status, 200)
  t.match(text, /\[-\]certificate failed: .* expired .*; readiness does not depend on it now/)
  t.match(text, 'readyz check passed')

  const flags = [`--serve-port=${hub.hub.opsPort}`, `--token-file=${hub.inspectTokenFile}`]
  let shown = ''
  const terminal = { out: (line: string) => (shown += line), err: (line: string) => t.fail(line) }
  t.equal(await inspect.run(['status', ...flags], terminal), 0)
  t.match(shown, /^\[\+\]store +ok$/m)
  t.match(shown, /^\[-\]certificate +.* expired .*; readiness does not depend on it now$/m)
})

void t.test('a hub starts with an expired certificate', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  const rootDir = rootFolder(t)
  const { certificate, key } = await elsewhere.issue({ ...kubelet, lifetimeMs: -1_000 })
  const file = (name: string, text: string): string => {
    writeFileSync(join(rootDir, name), text)
    return join(rootDir, name)
  }
  const hub = await startTestHub(t, {
    upstreams: [],
    flags: [
      `--server-addr=${cloud.url}`,
      `--upstream-ca=${file('ca.crt', cloud.sandbox.caCertificate ?? '')}`,
      `--upstream-client-cert=${file('old.crt', certificate)}`,
      `--upstream-client-key=${file('old.key', key)}`,
    ],
  })
  await hub.logged('API servers will refuse it')
  await hub.logged("an API server does not accept the hub's credentials")
  t.match(refusals(hub).join(''), /old\.crt/)
  t.match((await readyz(hub)).text, /\[-\]certificate failed: .*old\.crt/)
})

for (const probes of ['refused, too', "a gateway's"]) {
  void t.test(`one of two API servers refuses the hub, and its probes are ${probes}`, async (t) => {
    const [refusing, accepting] = [await startCloud(t), await startCloud(t)]
    for (const cloud of [refusing, accepting]) cloud.addPods('a')
    const upstreams = [refusing, accepting]
    const hub = await startOnlineHub(t, { upstreams, flags: ['--lb-mode=priority'] })
    const client = hub.as('kubelet')
    await client.list(podsOfNode)
    accepting.addPods('b')
    using _refused = refusing.sandbox.faults.fail(
      401,
      ({ path }) => path !== '/readyz' || probes === 'refused, too',
    )
    const { answer, names } = await client.list(podsOfNode)
    t.match(answer, { status: 200, headers: { age: undefined } })
    t.strictSame(names, ['default/a', 'default/b'])
    const created = await client.send(leases, { method: 'POST', body: lease })
    t.equal(created.status, 201)
    t.ok(accepting.sandbox.get(leaseResource, nodeName, 'kube-node-lease'))
  })
}
