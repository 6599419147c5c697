/**
 * Who stands between a node and its API servers while it bootstraps, and who has stolen the token:
 * what each gets (docs/security.md).
 */
import { existsSync, readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { obtainedFiles } from '../../src/config/root-dir.ts'
import { podsOfNode } from '../kit/cloud.ts'
import { startTestHub, type TestHub } from '../kit/hub.ts'
import { joinToken, startJoinable, type JoinableCloud } from '../kit/joinable.ts'

t.setTimeout(300_000)

const start = (t: Test, servers: readonly JoinableCloud[], flags: readonly string[]) =>
  startTestHub(t, {
    upstreams: [],
    flags: [`--server-addr=${servers.map(({ cloud }) => cloud.url).join(',')}`, ...flags],
  })

/** The callers of an API server, each once. */
const callersOf = ({ cloud }: JoinableCloud): readonly string[] => [
  ...new Set(cloud.sandbox.requests.map(({ user }) => user?.name ?? 'unauthenticated')),
]

const nothingIn = (t: Test, hub: TestHub): void => {
  const { ca, pair } = obtainedFiles(hub.config.rootDir)
  t.notOk(existsSync(ca) || existsSync(pair))
}

void t.test('a server that relays the signed cluster-info gets no token', async (t) => {
  const [cluster, middle] = [await startJoinable(t), await startJoinable(t)]
  middle.announce(cluster.authority.certificate, joinToken)
  const hub = await start(t, [middle], cluster.flags)
  await hub.logged('is not signed by the CA')
  t.strictSame(callersOf(middle), ['system:anonymous'])
  nothingIn(t, hub)
})

void t.test('a server that adds its own CA to a pinned one gets no token', async (t) => {
  const [cluster, thief] = [await startJoinable(t), await startJoinable(t)]
  thief.announce(cluster.authority.certificate + thief.authority.certificate, joinToken)
  const hub = await start(t, [thief], cluster.flags)
  await hub.logged('is not signed by the CA')
  t.strictSame(callersOf(thief), ['system:anonymous'])
  nothingIn(t, hub)
})

void t.test('a hub that has its CA takes no other CA from a later impostor', async (t) => {
  const [cluster, middle] = [await startJoinable(t), await startJoinable(t)]
  const hub = await start(t, [cluster], cluster.flags)
  await hub.logged('the hub has obtained a client certificate')
  await hub.stop()
  const { ca } = obtainedFiles(hub.config.rootDir)
  const before = readFileSync(ca, 'utf8')
  middle.announce(before + middle.authority.certificate, joinToken)
  const flags = [`--server-addr=${middle.cloud.url}`, `--root-dir=${hub.config.rootDir}`]
  const later = await startTestHub(t, { upstreams: [], flags: [...cluster.flags, ...flags] })
  await later.logged("the cluster's CA cannot be compared with the one that is published")
  t.equal(readFileSync(ca, 'utf8'), before)
  t.strictSame(callersOf(middle), [], 'it got no request')
})

void t.test('a stolen token reads nothing of the node’s cache', async (t) => {
  const cluster = await startJoinable(t)
  cluster.cloud.addPods('a')
  const hub = await start(t, [cluster], cluster.flags)
  await hub.logged('an API server is now healthy')
  t.strictSame((await hub.as('kubelet').list(podsOfNode)).names, ['default/a'])
  await hub.as('kubelet', { token: joinToken }).get(podsOfNode)
  // Not the last request: the hub’s own go on beside it.
  const ofPods = cluster.cloud.sandbox.requests.filter(({ url }) => url.startsWith(podsOfNode))
  t.ok(ofPods.some(({ user }) => user?.name === 'system:bootstrap:abcdef'))
  await cluster.cloud.unplug()
  await hub.offline()
  t.strictSame((await hub.as('kubelet').list(podsOfNode)).names, ['default/a'])
  t.not((await hub.as('kubelet', { token: joinToken }).get('/api/v1/pods')).status, 200)
  t.equal(
    (await hub.as('kubelet', { token: 'ghijkl.0123456789abcdef' }).get(podsOfNode)).status,
    401,
  )
})
