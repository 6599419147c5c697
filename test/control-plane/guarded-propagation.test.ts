import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt } from '../../src/api/kube/json-at.ts'
import { Daemon } from '../kit/cluster/daemon.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { noNodeNetwork } from '../kit/cluster/node-network.ts'
import { busyboxImage } from '../kit/cluster/oci-image.ts'
import { noControlPlane, startControlPlane } from '../kit/control-plane.ts'
import { noKubelet } from '../kit/kubelet.ts'
import { until } from '../kit/until.ts'
import { startGuardedNode, verdictOn } from './guarded-node.ts'
import { ObservedChanges } from './observed-changes.ts'
import { podRunning } from './seen.ts'

t.setTimeout(600_000)

const skip = noControlPlane() ?? noKubelet() ?? noNodeNetwork() ?? false
const nodeName = 'edge-1'
const pods = '/api/v1/namespaces/default/pods'
const [shared, legacy, ofHost, last] = [18_081, 18_082, 18_083, 18_084]

void t.test(
  'guarded: a pod runs on the host network if its ports are free, and no pod is recreated',
  { skip, timeout: 600_000 },
  async (t) => {
    const node = await guardedPods(t)

    await t.test('a pod whose port is free runs on the network of the host', async (t) => {
      await node.create('first', shared)
      await node.serves(t, 'first', shared)
      t.match(await node.verdict('first'), { status: 'True', reason: 'Propagated' })
    })

    await t.test('a pod whose port is held is unchanged, with a condition', async (t) => {
      await node.create('second', shared)
      await node.isRefused(t, 'second', {
        reason: 'PortHeld',
        message: `port ${shared}/TCP is held by pod default/first. The pod is propagated when the port is free.`,
      })
      await until('the kubelet to report that it has no network', async () =>
        (await node.reasonsOf('second')).includes('FailedCreatePodSandBox'),
      )
      t.ok((await node.reasonsOf('second')).includes('PortHeld'), 'an Event says why')
    })

    await t.test('a pod whose port a host program uses is not propagated', async (t) => {
      const program = await node.programOn(ofHost)
      await node.create('third', ofHost)
      await node.isRefused(t, 'third', {
        reason: 'PortInUse',
        message: `a program of the host that is no known pod uses port ${ofHost}/TCP.`,
      })
      await program.stop()
      await node.serves(t, 'third', ofHost)
      // It is reported once it stands, and the pod may serve before that.
      await until('the refusal to be over', async () => {
        return (await node.verdict('third'))['status'] === 'True'
      })
      t.match(await node.verdict('third'), { status: 'True', reason: 'Propagated' })
    })

    for (const [what, act] of [
      ['the kubelet restarts', () => node.kubelet.restart()],
      ['the hub restarts', () => node.hub.daemon.stop().then(() => node.hub.daemon.start())],
      ['the hub is killed', () => node.hub.daemon.restart()],
    ] as const)
      await t.test(`no pod is recreated when ${what}`, async (t) => {
        await act()
        await node.nothingIsNew(t)
        await node.isRefused(t, 'second', { reason: 'PortHeld', message: '' })
      })

    await t.test('the holder ends: the refused pod runs', async (t) => {
      await node.remove('first')
      await node.serves(t, 'second', shared)
      t.match(await node.verdict('second'), { status: 'True', reason: 'Propagated' })
      await node.nothingIsNew(t)
    })

    await t.test('mode on propagates pods that guarded refuses; guarded keeps them', async (t) => {
      await node.create('waits', shared)
      await node.isRefused(t, 'waits', { reason: 'PortHeld', message: '' })
      await node.hub.propagate('on')
      await node.create('legacy', legacy)
      await node.serves(t, 'legacy', legacy)
      await node.hub.propagate('guarded')
      await node.nothingIsNew(t)
      await node.create('beside', legacy)
      await node.isRefused(t, 'beside', {
        reason: 'PortHeld',
        message: `port ${legacy}/TCP is held by pod default/legacy.`,
      })
    })

    await t.test('without a link, the same pods run after a reboot, each at once', async (t) => {
      await node.reboot(t)
      await node.nothingIsNew(t)
      await node.isRefused(t, 'waits', { reason: 'PortHeld', message: '' })
    })

    for (const lost of [['host-network.json'], ['cache'], ['host-network.json', 'cache']])
      await t.test(`${lost.join(' and ')} lost: no port is given twice`, async (t) => {
        const name = `new-${lost.length}-${lost[0]?.length}`
        await node.afterLossOf(...lost)
        await node.create(name, shared)
        await node.isRefused(t, name, {
          reason: 'PortHeld',
          message: `port ${shared}/TCP is held by pod default/second.`,
        })
        await node.nothingIsNew(t)
      })

    await t.test('a refused pod runs later, even if verdicts are lost', async (t) => {
      await node.remove('second')
      await node.serves(t, 'waits', shared)
    })

    await t.test('mode off leaves running pods, and propagates no new one', async (t) => {
      await node.hub.propagate('off')
      await node.create('late', last)
      await until('the kubelet to report that it has no network', async () =>
        (await node.reasonsOf('late')).includes('FailedCreatePodSandBox'),
      )
      await node.nothingIsNew(t)
      await node.hub.daemon.restart()
      await node.nothingIsNew(t)
    })
  },
)

/** A node in mode guarded, and the pods that were seen to run on it. */
async function guardedPods(t: Test) {
  const plane = await startControlPlane(t, { controllerManager: true })
  const { admin } = plane
  const node = await startGuardedNode(t, plane, nodeName)
  const changes = new ObservedChanges(plane, node.kubelet)
  const first = new Map<string, readonly string[]>()
  const before = (): number => 2 * first.size + removed
  let removed = 0
  const list = async (path: string) =>
    listAt(JSON.parse((await admin.get(path)).body.toString()) as JsonObject, 'items')
  /** Resolves when the program of the pod answers on the port, by a look from the node. */
  const answers = (name: string, port: number): Promise<unknown> =>
    until(
      `${name} to answer`,
      async () => (await node.network.fetch(`http://127.0.0.1:${port}/`))?.trim() === name,
      { seconds: 90 },
    )
  const ports = new Map<string, number>()
  /** containerd reports what it has started in events, which may come after the program answers. */
  const haveStarted = (count: number): Promise<unknown> =>
    until(`${count} starts`, () => node.started() >= count, { describe: node.started })
  return {
    ...node,
    verdict: (name: string) => verdictOn(plane, name),
    async create(name: string, port: number) {
      const { status } = await admin.post(pods, serving(name, port))
      if (status !== 201) throw new Error(`pod ${name} was answered ${status}`)
    },
    async remove(name: string) {
      await admin.send('DELETE', `${pods}/${name}`)
      first.delete(name)
      removed += 2
    },
    /** The reasons of the Events about a pod. */
    reasonsOf: async (name: string): Promise<readonly string[]> =>
      (await list('/api/v1/namespaces/default/events'))
        .filter((event) => textAt(event, 'involvedObject', 'name') === name)
        .map((event) => textAt(event, 'reason')),
    async serves(t: Test, name: string, port: number) {
      await answers(name, port)
      const { spec, status } = await podRunning(admin, name)
      t.equal(spec?.hostNetwork ?? false, false, 'the API does not say so')
      t.equal(status?.podIP, status?.hostIP)
      t.ok(await node.isOnHost(name))
      first.set(name, await node.running(name))
      ports.set(name, port)
      await haveStarted(before())
      t.equal(node.started(), before(), 'one sandbox and one container for each pod that ran')
    },
    async isRefused(t: Test, name: string, expected: { reason: string; message: string }) {
      let last: JsonObject = {}
      await until(
        `${name} to be refused`,
        async () => {
          last = await verdictOn(plane, name)
          return last['status'] === 'False' && last['reason'] === expected.reason
        },
        { describe: () => last },
      )
      const message = textAt(last, 'message')
      t.ok(message.startsWith(expected.message), `${name}: ${message}`)
      const { spec, status } = (await admin.get(`${pods}/${name}`)).json()
      t.equal(spec?.hostNetwork ?? false, false)
      t.equal(status?.phase, 'Pending')
      t.strictSame(await node.running(name), [], `${name} has neither sandbox nor container`)
    },
    programOn(port: number): Promise<Daemon> {
      const found = findBinaries(['busybox'])
      if ('missing' in found) throw new Error(found.missing)
      const folder = node.network.workspace.path
      const [command, args] = node.network.inside(found.paths.busybox, [
        'httpd',
        '-f',
        '-p',
        String(port),
        '-h',
        folder,
      ])
      return new Daemon(node.network.workspace, `program-${port}`, {
        command,
        args,
        ready: async () =>
          (await node.network.fetch(`http://127.0.0.1:${port}/net.d/0-loopback.conf`)) !==
          undefined,
      }).start()
    },
    async afterLossOf(...names: readonly string[]) {
      await node.hub.daemon.kill()
      for (const name of names) rmSync(join(node.hub.root, name), { recursive: true })
      await node.hub.daemon.start()
    },
    async reboot(t: Test) {
      await plane.first.daemon.kill()
      await node.hub.daemon.kill()
      await node.kubelet.powerCut()
      const begun = node.started()
      await Promise.all([node.hub.daemon.start(), node.kubelet.daemon.start()])
      for (const [name, port] of ports) if (first.has(name)) await answers(name, port)
      await haveStarted(begun + 2 * first.size)
      t.equal(node.started() - begun, 2 * first.size, 'none was first on another network')
      removed += 2 * first.size
      await plane.first.daemon.start()
      for (const name of first.keys()) {
        await podRunning(admin, name)
        first.set(name, await node.running(name))
      }
    },
    /** The same sandboxes and containers run, once the kubelet has looked at every pod. */
    async nothingIsNew(t: Test) {
      await changes.make([...first.keys()])
      for (const [name, ids] of first)
        t.strictSame(await node.running(name), ids, `${name}: the same sandbox and container`)
      t.equal(node.started(), before(), 'containerd has started nothing')
    },
  }
}

/** A pod whose program answers with its name on the port that it declares. */
const serving = (name: string, port: number): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    nodeName,
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    tolerations: [{ operator: 'Exists' }],
    containers: [
      {
        name: 'main',
        image: busyboxImage,
        imagePullPolicy: 'Never',
        command: ['sh', '-c', `cd /tmp && echo ${name} > index.html && exec httpd -f -p ${port}`],
        ports: [{ containerPort: port, protocol: 'TCP' }],
      },
    ],
  },
})
