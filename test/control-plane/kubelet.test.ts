import t from 'tap'
import { until } from '../kit/until.ts'
import { type ControlPlane, noControlPlane, startControlPlane } from '../kit/control-plane.ts'
import { type Kubelet, noKubelet } from '../kit/kubelet.ts'
import { busyboxPod } from './pod.ts'
import { containerId, nodeReady, podRunning } from './seen.ts'
import { nodeName, startNodeHub, startNodeKubelet } from './node.ts'

t.setTimeout(240_000)

const skip = noControlPlane() ?? noKubelet() ?? false
const pods = '/api/v1/namespaces/default/pods'

void t.test(
  'a kubelet runs its pods through the hub: online, restarted offline, after a crash of the hub, and online again',
  { skip, timeout: 180_000 },
  async (t) => {
    const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
    const hub = await startNodeHub(plane)
    const kubelet = await startNodeKubelet(t, plane, hub)

    await t.test('online: the node becomes Ready, a scheduled pod runs', async (t) => {
      await nodeReady(plane.admin, nodeName)
      for (const name of ['steady', 'hit-offline', 'hit-after-crash'])
        t.equal((await plane.admin.post(pods, busyboxPod(name))).status, 201)
      await showsWhatRuns(plane, kubelet, ['steady', 'hit-offline', 'hit-after-crash'])
    })
    const before = await kubelet.containers()
    const idOf = (name: string): string | undefined => before.get(name)?.id

    await t.test(
      'API server stopped, kubelet restarted: no container ends, a killed one is restarted',
      async (t) => {
        await plane.first.daemon.kill()
        await kubelet.restart()
        await comesBackWhenKilled(kubelet, 'hit-offline')
        t.strictSame(await podsKnown(plane, kubelet), [...before.keys()].toSorted())
        const after = await kubelet.containers()
        t.equal(after.get('steady')?.id, idOf('steady'))
        t.equal(after.get('hit-after-crash')?.id, idOf('hit-after-crash'))
      },
    )

    await t.test('the hub killed and started, the kubelet restarted: the same', async (t) => {
      await hub.daemon.restart()
      await kubelet.restart()
      await comesBackWhenKilled(kubelet, 'hit-after-crash')
      t.strictSame(await podsKnown(plane, kubelet), [...before.keys()].toSorted())
      t.equal((await kubelet.containers()).get('steady')?.id, idOf('steady'))
    })

    await t.test('API server back: a new pod runs, and Pod statuses are current', async (t) => {
      await plane.first.daemon.start()
      t.equal((await plane.admin.post(pods, busyboxPod('late'))).status, 201)
      await showsWhatRuns(plane, kubelet, ['late', ...before.keys()])
      await nodeReady(plane.admin, nodeName)
      t.equal((await kubelet.containers()).get('steady')?.id, idOf('steady'))
    })
  },
)

/** Kills a pod's container and waits for another in its place. */
async function comesBackWhenKilled(kubelet: Kubelet, pod: string): Promise<void> {
  const killed = (await kubelet.containers()).get(pod)
  if (killed === undefined) throw new Error(`${pod} runs no container that could be killed`)
  killed.kill()
  await until(`a new container in ${pod}`, async () => {
    const now = (await kubelet.containers()).get(pod)
    return now !== undefined && now.id !== killed.id
  })
}

/**
 * The API and the container runtime agree on the pods that run and on the ids of their containers.
 */
async function showsWhatRuns(
  plane: ControlPlane,
  kubelet: Kubelet,
  names: readonly string[],
): Promise<void> {
  for (const name of names) await podRunning(plane.admin, name)
  await until('the API to tell the ids of what runs', async () => {
    const running = await kubelet.containers()
    const told = await Promise.all(
      names.map(async (name) => containerId((await plane.admin.get(`${pods}/${name}`)).json())),
    )
    return names.every((name, at) => told[at] !== undefined && told[at] === running.get(name)?.id)
  })
}

/** The pods that the kubelet itself believes to be its own. */
async function podsKnown(plane: ControlPlane, kubelet: Kubelet): Promise<string[]> {
  const { items = [] } = await kubelet.pods(plane.credentials({ commonName: 'reader' }))
  return items.map(({ metadata }) => metadata.name).toSorted()
}
