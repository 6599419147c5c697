import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { valueAt, listAt } from '../../src/api/kube/json-at.ts'
import { Client, nameOf, objectOf, type Watching } from '../kit/client.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { type HubProcess } from '../kit/cluster/hub-process.ts'
import { findReleases, type Release } from '../kit/cluster/releases.ts'
import { until } from '../kit/until.ts'
import {
  administrator,
  type ControlPlane,
  noControlPlane,
  startControlPlane,
} from '../kit/control-plane.ts'
import { noKubelet } from '../kit/kubelet.ts'
import { busyboxPod } from './pod.ts'
import { nodeReady, podRunning } from './seen.ts'
import { nodeName, startNodeHub, startNodeKubelet } from './node.ts'

const { found, missing, mistakes } = findReleases()
/** Of one test; control planes, hubs and kubelets share what cores there are. */
const timeout = 240_000
t.setTimeout(timeout * (4 * found.length + 1))
const namespace = '/api/v1/namespaces/default'

t.comment(
  `Kubernetes versions tried: ${found.map(({ version }) => version).join(', ') || 'none'}; not found: ${missing.join(', ') || 'none'}`,
)
for (const minor of missing)
  void t.test(
    `Kubernetes ${minor}`,
    {
      skip: `KUBEBUILDER_ASSETS_${minor.replace('.', '_')} names no folder with its kube-apiserver`,
    },
    async () => undefined,
  )

void t.test('each variable names the folder of its version', async (t) =>
  t.strictSame(mistakes, []),
)

for (const release of found) {
  for (const watchList of [true, false])
    void t.test(
      `Kubernetes ${release.version}, WatchList ${watchList ? 'on' : 'off'}: the node reads the same online, offline, and from a hub started again`,
      { skip: noControlPlane(release) ?? noGate(release, 'WatchList') ?? false, timeout },
      (t) => readsTheSame(t, release, watchList),
    )
  void t.test(
    `Kubernetes ${release.version}: its kubelet’s pod comes back offline, from a hub started again`,
    { skip: noControlPlane(release) ?? noKubelet(release) ?? false, timeout },
    (t) => podComesBack(t, release, release),
  )
}

// The widest skew that Kubernetes supports, of what is found: a kubelet may be three minor versions
// older than the API server.
for (const server of found) {
  const oldest = found.find((each) => numberOf(server) - numberOf(each) <= 3)
  if (oldest && oldest !== server)
    void t.test(
      `Kubernetes ${server.version} and a kubelet of ${oldest.version}: its pod comes back offline`,
      { skip: noControlPlane(server) ?? noKubelet(oldest) ?? false, timeout },
      (t) => podComesBack(t, server, oldest),
    )
}

function numberOf({ minor }: Release): number {
  return Number(minor.split('.')[1])
}

/** Why a feature cannot be turned off in this API server. */
function noGate(release: Release, gate: string): string | undefined {
  const binaries = findBinaries(['kube-apiserver'], release)
  if ('missing' in binaries) return binaries.missing
  const help = execFileSync(binaries.paths['kube-apiserver'], ['--help']).toString()
  return new RegExp(`\\b${gate}=true\\|false`).test(help)
    ? undefined
    : `${release.version} has no feature gate ${gate}`
}

const startHub = (plane: ControlPlane): Promise<HubProcess> =>
  startNodeHub(plane, { kubeconfig: plane.kubeconfig(administrator) })

/**
 * Followed by a list and a watch from its version, and by a WatchList where the API server has it.
 */
const collections = {
  listed: { path: `${namespace}/configmaps`, kind: 'ConfigMap' },
  watchListed: { path: `${namespace}/secrets`, kind: 'Secret' },
} as const

const watchListQuery = {
  sendInitialEvents: 'true',
  resourceVersionMatch: 'NotOlderThan',
  allowWatchBookmarks: 'true',
}

async function readsTheSame(t: Test, release: Release, watchList: boolean): Promise<void> {
  const plane = await startControlPlane(t, {
    release,
    apiserverFlags: [`--feature-gates=WatchList=${watchList}`],
  })
  t.equal(
    valueAt((await plane.admin.get('/version')).json() as unknown as JsonObject, 'gitVersion'),
    release.version,
  )
  const hub = await startHub(plane)
  const kubelet = new Client({ url: hub.url, component: 'kubelet', encoding: 'protobuf' })
  const { certificate, key } = plane.credentials(administrator)
  const direct = new Client({
    url: plane.url,
    component: 'kubelet',
    encoding: 'protobuf',
    tls: {
      ca: readFileSync(plane.pki.ca.certificate, 'utf8'),
      cert: readFileSync(certificate, 'utf8'),
      key: readFileSync(key, 'utf8'),
    },
  })
  await until('the namespace default', async () => {
    return (await plane.admin.get(namespace)).status === 200
  })
  const make = async (name: string): Promise<void> => {
    for (const { path, kind } of Object.values(collections)) {
      const { status } = await plane.admin.post(path, {
        apiVersion: 'v1',
        kind,
        metadata: { name },
      })
      t.equal(status, 201, `${kind} ${name}`)
    }
  }
  await make('before')

  const { listed, watchListed } = collections
  const { resourceVersion } = await kubelet.list(listed.path)
  const watches = [await kubelet.watch(listed.path, { resourceVersion })]
  const begun = await kubelet.watch(watchListed.path, watchListQuery)
  const directly = await direct.watch(watchListed.path, watchListQuery)
  t.equal(directly.status, watchList ? 200 : 422)
  directly.hangUp()
  t.equal(begun.status, 200, 'from the hub a WatchList is to be had all the same')
  t.strictSame(await initialNames(begun), ['default/before'])
  watches.push(begun)
  await make('while-watched')
  for (const watch of watches) {
    const [event] = await watch.take(1)
    t.equal(event?.type, 'ADDED')
    t.equal(event && nameOf(event.object), 'default/while-watched')
  }
  const online = await itemsOf(direct)
  t.strictSame(await itemsOf(kubelet), online, 'online')

  await plane.first.daemon.kill()
  for (const watch of watches) watch.hangUp()
  t.strictSame(await itemsOf(kubelet), online, 'offline')
  const offline = await kubelet.watch(watchListed.path, watchListQuery)
  t.strictSame(await initialNames(offline), ['default/before', 'default/while-watched'])
  offline.hangUp()
  const refused = await kubelet.send(listed.path, {
    method: 'POST',
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'refused' } },
  })
  t.equal(refused.status, 503)

  await hub.daemon.restart()
  t.strictSame(await itemsOf(kubelet), online, 'from a hub started again')

  await plane.first.daemon.start()
  await make('after')
  await until('the hub to be online', async () => {
    const seen = await itemsOf(kubelet)
    return seen.every((items) =>
      items.some((item) => nameOf(item as JsonObject) === 'default/after'),
    )
  })
  t.strictSame(await itemsOf(kubelet), await itemsOf(direct), 'online again')
}

/** The objects of both collections. Rejects where one is not answered with 200. */
function itemsOf(client: Client): Promise<(readonly Json[])[]> {
  return Promise.all(
    Object.values(collections).map(async ({ path }) => {
      const answer = await client.get(path)
      if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`)
      return listAt(objectOf(answer), 'items')
    }),
  )
}

/** The names of a WatchList's initial events, which a bookmark ends. */
async function initialNames(watch: Watching): Promise<string[]> {
  const names: string[] = []
  for (;;) {
    const [event] = await watch.take(1)
    if (event?.type !== 'ADDED') return names.toSorted()
    names.push(nameOf(event.object))
  }
}

/** A node and its pod, without the controllers that other tests have. */
async function podComesBack(t: Test, servers: Release, nodes: Release): Promise<void> {
  const plane = await startControlPlane(t, { release: servers })
  const hub = await startNodeHub(plane)
  const kubelet = await startNodeKubelet(t, plane, hub, { release: nodes })
  await nodeReady(plane.admin, nodeName)
  const node = (await plane.admin.get(`/api/v1/nodes/${nodeName}`)).json()
  t.equal(
    valueAt(node as unknown as JsonObject, 'status', 'nodeInfo', 'kubeletVersion'),
    nodes.version,
  )
  await plane.admin.post(`${namespace}/serviceaccounts`, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default' },
  })
  const pod = busyboxPod('first', { nodeName })
  t.equal((await plane.admin.post(`${namespace}/pods`, pod)).status, 201)
  await podRunning(plane.admin, 'first')
  const before = (await kubelet.containers()).get('first')?.id

  await plane.first.daemon.kill()
  await hub.daemon.kill()
  await kubelet.powerCut()
  await Promise.all([hub.daemon.start(), kubelet.daemon.start()])
  const after = await until(
    'the pod to run again',
    async () => (await kubelet.containers()).get('first')?.id,
    { seconds: 90 },
  )
  t.not(after, before, 'in another container')

  await plane.first.daemon.start()
  await nodeReady(plane.admin, nodeName)
  await podRunning(plane.admin, 'first')
}
