import t, { type Test } from 'tap'
import { installReportIn } from '../../src/api/kube/install-report.ts'
import { nodeAdopters } from '../../src/cluster/install/nodes.ts'
import { type ControlPlane, startControlPlane } from '../kit/control-plane.ts'
import type { Kubelet } from '../kit/kubelet.ts'
import { until } from '../kit/until.ts'
import { type BareNode, noBareNode } from './bare-node.ts'
import { buildImage, type BuiltImage, hubImage, noImageTools } from './image/build.ts'
import { labelForHub, rolledOut } from './hub-label.ts'
import { busyboxPod } from './pod.ts'
import { leaseRenewed, nodeReady, podRunning } from './seen.ts'
import {
  noYurthub,
  realYurthub,
  stampOf,
  startYurthubNode,
  yurthubManifest,
  yurthubStandIn,
  type YurthubImage,
} from './yurthub-node.ts'

t.setTimeout(1_200_000)

const skip = noBareNode() || (noImageTools() ?? false)
const pods = '/api/v1/namespaces/default/pods'
const names = ['first', 'second']
const manifests = '/etc/kubernetes/manifests'

interface Adopted {
  readonly plane: ControlPlane
  readonly node: BareNode
  readonly kubelet: Kubelet
}

/** The sandboxes and containers of the pods, which last as long as nobody touches these. */
const untouched = async ({ kubelet }: Adopted): Promise<readonly string[]> =>
  (await kubelet.runtime.running())
    .filter(({ pod }) => names.includes(pod))
    .map(({ kind, pod, id }) => `${pod} ${kind} ${id}`)
    .toSorted()

async function restarts({ plane }: Adopted): Promise<readonly unknown[]> {
  const all = await Promise.all(names.map((name) => plane.admin.get(`${pods}/${name}`)))
  return all.map((pod) => pod.json().status?.containerStatuses?.[0]?.restartCount)
}

/** Of what runs the kubelet's hub. */
const hubOf = async ({ kubelet }: Adopted): Promise<readonly string[]> =>
  (await kubelet.runtime.running())
    .filter(({ kind, name }) => kind === 'container' && /^(?:yurt-hub|nodehub)$/.test(name))
    .map(({ name }) => name)

/** Another image of the same release. */
const next = 'localhost/nodehub:next'

async function adopts(
  t: Test,
  name: string,
  yurthubOf: (plane: ControlPlane, image: BuiltImage) => Promise<YurthubImage>,
): Promise<void> {
  const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
  const image = await buildImage(plane.workspace)
  const yurthub = await yurthubOf(plane, image)
  const images = [image.archive, await image.named(next)]
  const at = { plane, ...(await startYurthubNode(t, plane, { name, yurthub, images })) }
  const { node } = at
  await nodeReady(plane.admin, name)
  for (const pod of names)
    t.equal((await plane.admin.post(pods, busyboxPod(pod, { nodeName: name }))).status, 201)
  for (const pod of names) await podRunning(plane.admin, pod)
  t.strictSame(await hubOf(at), ['yurt-hub'])
  const before = await untouched(at)
  t.equal(before.length, 4)
  const stamp = stampOf(node, yurthubManifest)
  const written = (): readonly string[] =>
    node.network
      .written()
      .filter((path) => path.startsWith(manifests) || /openyurt|\/bin\/nodehub$/.test(path))
  const files = written()

  await t.test('the plan changes nothing', async (t) => {
    const { code, out, err } = await node.run('adopt', '--dry-run', `--image=${hubImage}`)
    t.equal(code, 0, err)
    t.match(out, `write   ${manifests}/nodehub.yaml`)
    t.strictSame(written(), files)
  })

  await t.test('a hub that does not start is rolled back', async (t) => {
    const { code, out, err } = await node.run(
      'adopt',
      '--image=localhost/nodehub:not-there',
      '--timeout=45s',
    )
    t.equal(code, 1)
    t.match(err, 'the hub is not ready after 45 s')
    t.match(out, 'Rolled back: yurthub runs with its former files')
    t.equal(stampOf(node, yurthubManifest), stamp)
    t.strictSame(written(), files)
    await until('yurthub alone to run', async () => (await hubOf(at)).join() === 'yurt-hub')
    await leaseRenewed(plane.admin, name)
    await nodeReady(plane.admin, name)
    t.strictSame(await untouched(at), before)
  })

  await t.test('a label adopts the node, without a restart of pods', async (t) => {
    for (const set of nodeAdopters({ namespace: 'kube-system', image: hubImage }))
      await plane.admin.post('/apis/apps/v1/namespaces/kube-system/daemonsets', set)
    await labelForHub(plane.admin, name, 'adopt', 'Installed')
    t.ok(written().includes('/usr/local/bin/nodehub'), 'the host has the command')
    t.strictSame(await hubOf(at), ['nodehub'])
    t.strictSame(await untouched(at), before)
    t.strictSame(await restarts(at), [0, 0])
    const metrics = await node.network.fetch(`${node.opsUrl}/metrics`)
    t.match(metrics, /nodehub_requests_total\{[^}]*component="kubelet"/)
    await leaseRenewed(plane.admin, name)
    await nodeReady(plane.admin, name)
  })

  await t.test('a new pod starts via the hub', async (t) => {
    t.equal((await plane.admin.post(pods, busyboxPod('later', { nodeName: name }))).status, 201)
    await podRunning(plane.admin, 'later')
    t.strictSame(await untouched(at), before)
  })

  await t.test(
    'a DaemonSet with another image upgrades its hub, and then has rolled out',
    async (t) => {
      const [set] = nodeAdopters({ namespace: 'kube-system', image: next })
      await rolledOut(plane.admin, 'nodehub-adopt', set)
      const node = (await plane.admin.get(`/api/v1/nodes/${name}`)).json() as never
      t.match(installReportIn(node), { state: 'Installed', image: next })
      t.strictSame(await hubOf(at), ['nodehub'])
      await leaseRenewed(plane.admin, name)
      await nodeReady(plane.admin, name)
      t.strictSame(await untouched(at), before)
    },
  )

  await t.test('another label restores yurthub, without a restart of pods', async (t) => {
    await labelForHub(plane.admin, name, 'roll-back', 'Removed')
    t.equal(stampOf(node, yurthubManifest), stamp)
    t.strictSame(written(), files)
    await until('yurthub alone to run', async () => (await hubOf(at)).join() === 'yurt-hub')
    await leaseRenewed(plane.admin, name)
    await nodeReady(plane.admin, name)
    t.strictSame(await untouched(at), before)
    t.strictSame(await restarts(at), [0, 0])
  })
}

void t.test(
  'a real kubelet and its pods, as nodehub adopt changes its hub',
  { skip, timeout: 600_000 },
  (t) => adopts(t, 'edge-1', (_plane, image) => yurthubStandIn(image)),
)

void t.test(
  'a real kubelet and its pods, as nodehub adopt takes the place of a real yurthub',
  { skip: skip || noYurthub(), timeout: 600_000 },
  (t) => adopts(t, 'edge-2', realYurthub),
)
