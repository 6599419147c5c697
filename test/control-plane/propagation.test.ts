import { readlinkSync, rmSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { ApiClient } from '../kit/cluster/api-client.ts'
import { until } from '../kit/until.ts'
import { noControlPlane, startControlPlane } from '../kit/control-plane.ts'
import { noKubelet } from '../kit/kubelet.ts'
import { ObservedChanges } from './observed-changes.ts'
import { busyboxPod } from './pod.ts'
import { nodeReady, podRunning } from './seen.ts'
import { nodeName, startNodeHub, startNodeKubelet } from './node.ts'

t.setTimeout(600_000)

const skip = noControlPlane() ?? noKubelet() ?? false
const pods = '/api/v1/namespaces/default/pods'

void t.test(
  'no pod is recreated when the filter is switched, nor when hub or store are lost',
  { skip, timeout: 400_000 },
  async (t) => {
    const node = await hostNetworkNode(t)
    const { hub } = node

    await t.test('a pod without hostNetwork runs on the host network', async (t) => {
      await node.run('propagated')
      const { spec, status } = await node.pod('propagated')
      t.equal(spec?.hostNetwork ?? false, false, 'the API does not know')
      t.equal(status?.podIP, status?.hostIP)
      t.equal(await node.networkOf('propagated'), readlinkSync('/proc/self/ns/net'))
    })

    await t.test('the filter is switched off', async (t) => {
      await node.mode('off')
      await node.run('own')
      const { status } = await node.pod('own')
      t.not(status?.podIP, status?.hostIP, 'a new pod is on the pod network')
      await node.nothingIsNew(t)
    })

    await t.test('the hub is killed, and started in another mode', async (t) => {
      await node.kubeletIsFresh()
      await node.changed(() => node.write('on'))
      await node.nothingIsNew(t)
    })

    await t.test('the store is deleted', async (t) => {
      await node.kubeletIsFresh()
      await node.changed(() => {
        rmSync(node.cache, { recursive: true })
      })
      await node.nothingIsNew(t)
    })

    await t.test('all of the hub’s state is deleted, and the filter switched off', async (t) => {
      await node.changed(() => {
        rmSync(node.cache, { recursive: true })
        node.write('off')
      })
      await node.kubelet.restart()
      await node.nothingIsNew(t)
    })

    await hub.daemon.stop()
  },
)

/**
 * A node of a host-network pool with a pod network all the same, and its hub with the filter on.
 */
async function hostNetworkNode(t: Test) {
  const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
  const { admin, workspace } = plane
  const config = workspace.file('hub.yaml')
  const write = (mode: 'off' | 'on'): void =>
    writeFileSync(config, `host-network-propagation: ${mode}\n`)
  write('on')
  const hub = await startNodeHub(plane, { flags: [`--config=${config}`] })
  const kubelet = await startNodeKubelet(t, plane, hub)
  await nodeReady(admin, nodeName)
  const labels = {
    'apps.openyurt.io/nodepool': 'edge',
    'nodepool.openyurt.io/hostnetwork': 'true',
  }
  const patch = (path: string, content: object) =>
    admin.send('PATCH', path, JSON.stringify(content), 'application/merge-patch+json')
  await patch(`/api/v1/nodes/${nodeName}`, { metadata: { labels } })
  const ops = new ApiClient(hub.opsUrl)
  const report = async () =>
    JSON.parse((await ops.get('/inspect/host-network')).body.toString()) as {
      readonly mode: string
      readonly hostNetworkPool: boolean | 'unknown'
    }
  await until('the kind of the pool to be known', async () => {
    return (await report()).hostNetworkPool === true
  })

  const names: string[] = []
  const first = new Map<string, readonly string[]>()
  const running = async (name: string) =>
    (await kubelet.runtime.running()).filter(({ pod }) => pod === name)
  const containersOf = async (name: string): Promise<readonly string[]> =>
    (await running(name)).map(({ id }) => id).toSorted()
  const changes = new ObservedChanges(plane, kubelet)
  return {
    hub,
    kubelet,
    cache: workspace.file('hub', 'cache'),
    write,
    containersOf,
    pod: async (name: string) => (await admin.get(`${pods}/${name}`)).json(),
    /** A new pod, once it runs. */
    async run(name: string) {
      const command = ['/bin/sleep', '1000000']
      await admin.post(pods, busyboxPod(name, { command }))
      await podRunning(admin, name)
      names.push(name)
      first.set(name, await containersOf(name))
    },
    /** The network namespace of its containers. */
    async networkOf(name: string): Promise<string> {
      const [container] = (await running(name)).filter(({ kind }) => kind === 'container')
      return readlinkSync(`/proc/${container?.processId}/ns/net`)
    },
    /** Goes over to another mode while the hub runs. */
    async mode(next: 'off' | 'on') {
      write(next)
      process.kill(hub.daemon.id, 'SIGHUP')
      await until('the mode to change', async () => (await report()).mode === next)
    },
    /**
     * A kubelet that watches its pods and has waited for nothing yet. client-go waits twice for a
     * hub that was killed: it is refused, and then told 410, after which it lists. Each time it
     * waits twice as long as before, up to a minute, and begins anew only after two minutes without
     * a wait: beside one kubelet the third kill of the hub takes up to two minutes.
     */
    async kubeletIsFresh() {
      await kubelet.restart()
      await changes.make(names)
    },
    /** What is done while the hub is killed. */
    async changed(act: () => void) {
      await hub.daemon.kill()
      act()
      await hub.daemon.start()
    },
    /**
     * When the kubelet has looked at every pod as it is shown now, the same sandboxes and
     * containers run.
     */
    async nothingIsNew(test: Test) {
      await changes.make(names)
      for (const name of names) {
        const { status } = (await admin.get(`${pods}/${name}`)).json()
        test.strictSame(await containersOf(name), first.get(name), `${name}: the same containers`)
        test.equal(status?.containerStatuses?.[0]?.restartCount, 0, `${name}: never restarted`)
      }
    },
  }
}
