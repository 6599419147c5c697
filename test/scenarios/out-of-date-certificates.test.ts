/**
 * A kubelet at the TLS port whose certificate has expired during an outage, which then shows it or
 * none at all, or is yet to begin by a clock that runs behind; and who else is not taken for it.
 */
import { X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { join } from 'node:path'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { CertificateAuthority, type IssuedCertificate } from '../../src/certificates/authority.ts'
import { describedCertificate, validityOf } from '../kit/certificates.ts'
import type { Client } from '../kit/client.ts'
import { nodeName, pods, podsOfNode, type CloudServer } from '../kit/cloud.ts'
import { openStream } from '../kit/http2.ts'
import { startOnlineHub, goOnline, goOffline, startCloud, type TestHub } from '../kit/hub.ts'
import { requestAs } from '../kit/other-user.ts'
import { until } from '../kit/until.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { rootFolder } from '../kit/root-folder.ts'

const cluster = await CertificateAuthority.create('cluster')
const elsewhere = await CertificateAuthority.create('cluster')

const kubelet = { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] }
const request = { ...kubelet, usage: 'client' } as const

/** Expired already, and long ago. */
const old = await cluster.issue({ ...request, lifetimeMs: -1_000 })
const future = await describedCertificate({
  ...kubelet,
  signedBy: cluster,
  purposes: ['clientAuth'],
  hours: [24, 72],
})

interface Tap extends Teardown {
  testdir(): string
}

interface Node {
  readonly cloud: CloudServer
  readonly hub: TestHub
  /** A program at the TLS port. */
  readonly showing: (shown?: IssuedCertificate, component?: string) => Client
}

const isRoot = process.platform === 'linux' && process.getuid?.() === 0
const rootOnly = isRoot ? false : 'only root can be two users'

/** A node whose kubelet, and a service account, have read its pod. */
async function startNode(t: Tap, ...flags: string[]): Promise<Node> {
  const cloud = await startCloud(t, { tls: true })
  cloud.addPods('a')
  const clientCa = join(rootFolder(t), 'client-ca.crt')
  writeFileSync(clientCa, cluster.certificate)
  const hub = await startOnlineHub(t, {
    upstreams: [cloud],
    flags: ['--anonymous-loopback=root', `--client-ca=${clientCa}`, ...flags],
  })
  const showing: Node['showing'] = (shown, component = 'kubelet') =>
    hub.securelyAs(component, shown)
  const valid = await cluster.issue(request)
  t.teardown(() => mock.restoreAll())
  const { answer } = await showing(valid).list(podsOfNode)
  if (answer.status !== 200) throw new Error(`the list was answered ${answer.status}`)
  return { cloud, hub, showing }
}

/** A node whose link is cut while this certificate is valid, which has expired since. */
async function cutNode(t: Tap, ...flags: string[]): Promise<Node & { own: IssuedCertificate }> {
  const node = await startNode(t, ...flags)
  const own = await cluster.issue({ ...request, lifetimeMs: 3_000 })
  await node.showing(own).list(`${podsOfNode}&limit=500`)
  await node.cloud.unplug()
  await node.hub.offline()
  await expired(own)
  return { ...node, own }
}

const expired = (own: IssuedCertificate): Promise<unknown> =>
  until('its end', () => Date.now() > validityOf(own).validTo)

const statusOf = async (client: Client, path = podsOfNode): Promise<number> =>
  (await client.get(path)).status

const lease = {
  kind: 'Lease',
  apiVersion: 'coordination.k8s.io/v1',
  metadata: { name: nodeName, namespace: 'kube-node-lease' },
  spec: { holderIdentity: nodeName },
}
const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
const signing = '/apis/certificates.k8s.io/v1/certificatesigningrequests'

/** What counts offline alone counts no longer once the cloud is back. */
async function endsOnline(t: Test, cloud: CloudServer, hub: TestHub, of: Client): Promise<void> {
  const { resourceVersion } = await of.list(podsOfNode)
  const watch = await of.watch(podsOfNode, { resourceVersion })
  t.equal(watch.status, 200)
  const before = cloud.sandbox.requests.length
  cloud.touch(pods, 'a', 'default')
  await cloud.plug()
  t.equal(await watch.next(), undefined, 'its watch ends, without what is new')
  await hub.online()
  t.equal(await statusOf(of), 401)
  const sent = cloud.sandbox.requests.slice(before)
  t.notOk(sent.some(({ url, method }) => method !== 'GET' && !/selfsubject/.test(url)))
}

void t.test('a kubelet whose certificate expires offline goes on from the cache', async (t) => {
  const { cloud, hub, showing, own } = await cutNode(t)
  const client = showing(own)

  await t.test('with its pods, and what a node writes', async (t) => {
    const { answer, names } = await client.list(podsOfNode)
    t.equal(answer.status, 200)
    t.strictSame(names, ['default/a'])
    t.equal((await client.send(leases, { method: 'POST', body: lease })).status, 201)
    await hub.logged("the kubelet's certificate expired")
  })
  await t.test('and gets no 401, for which it would end itself', async (t) => {
    const body = { kind: 'CertificateSigningRequest', apiVersion: 'certificates.k8s.io/v1' }
    t.equal((await client.send(signing, { method: 'POST', body })).status, 503)
  })
  await t.test('also at a hub that has started since', async (t) => {
    await hub.restart()
    await hub.offline()
    t.strictSame((await showing(own).list(podsOfNode)).names, ['default/a'])
  })
  await t.test('until an API server answers the hub, which gets nothing for it', (t) =>
    endsOnline(t, cloud, hub, showing(own)),
  )
})

void t.test('a certificate not accepted while it was valid does not count', async (t) => {
  const { cloud, hub, showing } = await startNode(t)
  await goOffline(cloud, hub)
  t.equal(await statusOf(showing(old)), 401, 'it had expired before')
  t.equal(await statusOf(showing(future)), 401, 'no API server has seen it')
  const own = await cluster.issue({ ...request, lifetimeMs: 2_000 })
  await expired(own)
  t.equal(await statusOf(showing(own)), 401, 'it has never been shown')
})

void t.test('one that had ended when another was accepted does not count', async (t) => {
  const { cloud, hub, showing } = await startNode(t)
  const own = await cluster.issue({ ...request, lifetimeMs: 2_000 })
  t.equal(await statusOf(showing(own)), 200)
  await expired(own)
  t.equal(await statusOf(showing(await cluster.issue(request))), 200)
  await goOffline(cloud, hub)
  t.equal(await statusOf(showing(own)), 401, 'whose key may have been stolen since')
})

void t.test('a node whose clock has fallen behind does not lock itself out', async (t) => {
  const { cloud, hub, showing } = await startNode(t)
  const present = Date.now.bind(Date)
  await hub.stop()
  // As a hub has written it whose clock was right.
  const { fingerprint256 } = new X509Certificate(future.certificate)
  writeFileSync(
    join(hub.config.rootDir, 'accepted-certificates.json'),
    JSON.stringify([[fingerprint256, present() + 48 * 3_600_000]]),
  )
  await hub.start()
  await hub.online()
  t.equal(await statusOf(showing(future)), 401, 'not online, as at an API server')
  await goOffline(cloud, hub)
  const kept = showing(future)
  t.strictSame((await kept.list(podsOfNode)).names, ['default/a'])
  await hub.logged('the clock runs behind')
  mock.method(Date, 'now', () => present() + 48 * 3_600_000)
  await goOnline(cloud, hub)
  t.match(
    await kept.get(podsOfNode),
    { status: 401, headers: { connection: 'close' } },
    'with the clock set a new handshake has to see all of it',
  )
})

void t.test('no other certificate that is out of date makes its holder the node', async (t) => {
  const { hub, showing } = await cutNode(t)
  const lifetimeMs = 2_000
  const others = await Promise.all([
    elsewhere.issue({ ...request, lifetimeMs }),
    cluster.issue({ ...request, lifetimeMs, commonName: 'system:node:edge-2' }),
    cluster.issue({ ...request, lifetimeMs, organizations: [] }),
    cluster.issue({ ...request, lifetimeMs, usage: 'server' }),
    cluster.issue({
      ...request,
      commonName: 'admin',
      organizations: ['system:masters'],
      lifetimeMs,
    }),
  ])
  for (const each of others) {
    await expired(each)
    t.equal(await statusOf(hub.securelyAs('kubelet', each)), 401)
  }
  t.equal(await statusOf(showing(await cluster.issue(request))), 200)
})

void t.test('a person at the node has its records with the expired certificate', async (t) => {
  const { hub, own } = await cutNode(t)
  const pod = '/api/v1/namespaces/default/pods/a'
  const listed = await hub.securelyAs('kubectl', own).get('/api/v1/namespaces/default/pods')
  t.match(listed, { status: 200, headers: { warning: /kubelet|component|read/ } })
  const logs = await hub.securelyAs('kubectl', own).get(`${pod}/log`)
  t.match(logs.body.toString(), /kubelet/, 'the request goes to the kubelet')
  t.notMatch(logs.body.toString(), /relays to the kubelet only/)
  await hub.restart()
  await hub.offline()
  const without = await hub.securelyAs('kubectl').get(`${pod}/log`)
  t.equal(without.status, isRoot ? 403 : 401)
  if (isRoot)
    t.match(
      without.body.toString(),
      /relays to the kubelet only/,
      'without it no request goes to the kubelet',
    )
})

/** As a client of Go's does it with a certificate that has ended. */
void t.test(
  'a kubelet that shows no certificate goes on offline',
  { skip: rootOnly },
  async (t) => {
    const { cloud, hub, showing } = await startNode(t)
    const silent = showing()
    t.equal(await statusOf(silent), 401, 'online it is no caller')
    await goOffline(cloud, hub)

    await t.test('from the cache, by its socket, as at the plain port', async (t) => {
      t.strictSame((await silent.list(podsOfNode)).names, ['default/a'])
      t.equal((await silent.send(leases, { method: 'POST', body: lease })).status, 201)
      t.strictSame((await hub.as('kubelet').list(podsOfNode)).names, ['default/a'])
      await hub.logged('shows no certificate at the TLS port')
    })
    await t.test('and gets no 401 for what only the cloud can answer', async (t) => {
      const body = { kind: 'CertificateSigningRequest', apiVersion: 'certificates.k8s.io/v1' }
      t.equal((await silent.send(signing, { method: 'POST', body })).status, 503)
    })
    await t.test('over HTTP/2, which a kubelet speaks', async (t) => {
      const session = connect(hub.secureUrl, { ca: hub.ca })
      t.teardown(() => session.destroy())
      const answer = await openStream(session, { ':path': podsOfNode }).whole()
      t.equal(answer.status, 200)
    })
    await t.test('but not with an invalid token', async (t) => {
      t.equal(
        (await hub.securelyAs('kubelet', undefined, { token: 'nonsense' }).get(podsOfNode)).status,
        401,
      )
    })
    await t.test('until an API server answers the hub, which gets nothing for it', (t) =>
      endsOnline(t, cloud, hub, silent),
    )
  },
)

/** What root, and another user of the node, are answered offline without a certificate. */
async function offlineWithout(t: Tap, ...flags: string[]): Promise<readonly number[]> {
  const { cloud, hub } = await startNode(t, ...flags)
  await goOffline(cloud, hub)
  const asked = {
    url: `${hub.secureUrl}${podsOfNode}`,
    headers: { 'User-Agent': 'kubelet/v1.36.0' },
    ca: hub.ca,
  }
  const answers = await Promise.all([0, 65_534].map((uid) => requestAs(uid, [asked])))
  return answers.flat().map(({ status }) => status)
}

void t.test(
  'without a certificate the same callers count as at the plain port',
  { skip: rootOnly },
  async (t) => {
    const cases: readonly (readonly [flags: readonly string[], asRoot: number, another: number])[] =
      [
        [[], 200, 401],
        [['--anonymous-loopback=node'], 200, 200],
        [['--anonymous-loopback=none'], 401, 401],
        [['--plain-proxy=false'], 401, 401],
        [['--host-network-node'], 401, 401],
        [['--host-network-node', '--plain-proxy=true'], 200, 401],
      ]
    for (const [flags, ...expected] of cases)
      t.strictSame(await offlineWithout(t, ...flags), expected, flags.join(' ') || 'by default')
  },
)

void t.test(
  'the certificate counts while API servers refuse the hub, and is sent nowhere',
  async (t) => {
    const { cloud, hub, showing, own } = await cutNode(t)
    const refused = await elsewhere.issue(request)
    writeFileSync(join(hub.rootDir, 'node.crt'), refused.certificate)
    writeFileSync(join(hub.rootDir, 'node.key'), refused.key)
    hub.hub.reconfigure(hub.config)
    await goOnline(cloud, hub)
    await hub.logged("an API server does not accept the hub's credentials")
    const before = cloud.sandbox.requests.length
    t.strictSame((await showing(own).list(podsOfNode)).names, ['default/a'])
    const sent = cloud.sandbox.requests.slice(before)
    t.notOk(sent.some(({ url }) => url.includes('/pods')))
  },
)
