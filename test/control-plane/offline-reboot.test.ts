import t, { type Test } from 'tap'
import type { BootVerdict } from '../../src/hub/boot/verdict.ts'
import { ApiClient } from '../kit/cluster/api-client.ts'
import { until } from '../kit/until.ts'
import { type ControlPlane, noControlPlane, startControlPlane } from '../kit/control-plane.ts'
import { type Kubelet, type KubeletOptions, noKubelet } from '../kit/kubelet.ts'
import { link } from '../kit/wire/link.ts'
import { makeDependencies, needyPod } from './needy-pod.ts'
import { nodeReady, podRunning } from './seen.ts'
import { nodeName, startNodeHub, startNodeKubelet } from './node.ts'

t.setTimeout(600_000)

const skip = noControlPlane() ?? noKubelet() ?? false
const pods = '/api/v1/namespaces/default/pods'
const names = ['first', 'second', 'doomed', 'erased']

void t.test(
  'F18: after a power cut without an API server hub and kubelet start the same pods, with their volumes',
  { skip, timeout: 300_000 },
  async (t) => {
    const { plane, hub, kubelet, before } = await nodeWithPods(t)
    const ops = new ApiClient(hub.opsUrl)
    t.teardown(() => ops.close())
    const verdict = async (): Promise<BootVerdict> =>
      (await ops.get('/inspect/boot')).json() as unknown as BootVerdict
    await until('the verdict that the node would come back', async () => {
      const { ready, pods } = await verdict()
      return ready && pods.length === names.length
    })
    const { tokensUntil = '' } = await verdict()
    t.ok(Date.parse(tokensUntil) > Date.now(), 'their tokens last')
    await plane.first.daemon.kill()
    await hub.daemon.kill()
    await kubelet.powerCut()

    const began = performance.now()
    await Promise.all([hub.daemon.start(), kubelet.daemon.start()])
    await Promise.all(names.map((name) => answers(kubelet, name)))
    t.comment(`from the hub's start to the last pod's answer: ${seconds(began)}`)
    t.strictSame(await uids(plane, kubelet), before)

    await plane.first.daemon.start()
    for (const name of names) await podRunning(plane.admin, name)
    t.strictSame(await uids(plane, kubelet), before)
  },
)

void t.test(
  'the same for a kubelet that lists and watches; pods deleted in the cloud meanwhile go when the link is back',
  { skip, timeout: 300_000 },
  async (t) => {
    const { plane, way, hub, kubelet, before } = await nodeWithPods(t, {
      featureGates: { WatchListClient: false },
    })
    way.down()
    await hub.daemon.kill()
    await kubelet.powerCut()
    t.equal((await plane.admin.send('DELETE', `${pods}/doomed`)).status, 200)
    t.equal((await plane.admin.send('DELETE', `${pods}/erased?gracePeriodSeconds=0`)).status, 200)

    const began = performance.now()
    await Promise.all([hub.daemon.start(), kubelet.daemon.start()])
    await Promise.all(names.map((name) => answers(kubelet, name)))
    t.comment(`from the hub's start to the last pod's answer: ${seconds(began)}`)
    t.strictSame(await uids(plane, kubelet), before, 'pods whose deletion is not known yet run')

    way.up()
    await until('the deleted pods to be gone', async () => {
      const running = await kubelet.containers()
      const { status } = await plane.admin.get(`${pods}/doomed`)
      return status === 404 && !running.has('doomed') && !running.has('erased')
    })
    for (const name of ['first', 'second']) {
      await podRunning(plane.admin, name)
      await answers(kubelet, name)
    }
    const { doomed: _doomed, erased: _erased, ...left } = before
    // The API server has removed a pod before its kubelet learns of it.
    await until('the kubelet to know that they are gone', async () => {
      const known = await uids(plane, kubelet)
      return !('doomed' in known || 'erased' in known)
    })
    t.strictSame(await uids(plane, kubelet), left)
  },
)

const seconds = (began: number): string => `${((performance.now() - began) / 1000).toFixed(1)} s`

/**
 * A hub and a kubelet whose pods run and answer, with a link to the API server that can be taken
 * down.
 */
async function nodeWithPods(t: Test, options: Pick<KubeletOptions, 'featureGates'> = {}) {
  const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
  const way = await link(t, Number(new URL(plane.url).port))
  const hub = await startNodeHub(plane, { servers: [`https://127.0.0.1:${way.port}`] })
  const kubelet = await startNodeKubelet(t, plane, hub, options)
  await nodeReady(plane.admin, nodeName)
  await makeDependencies(plane)
  for (const name of names) {
    t.equal((await plane.admin.post(pods, needyPod(name))).status, 201)
  }
  for (const name of names) await podRunning(plane.admin, name)
  await Promise.all(names.map((name) => answers(kubelet, name)))
  return { plane, way, hub, kubelet, before: await uids(plane, kubelet) }
}

/** Uids of the pods that the kubelet takes for its own, by name. */
async function uids(plane: ControlPlane, kubelet: Kubelet): Promise<Record<string, string>> {
  const { items = [] } = await kubelet.pods(reader(plane))
  return Object.fromEntries(
    items
      .map(({ metadata: { name, uid = '' } }) => [name, uid] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
}

const reader = (plane: ControlPlane) => plane.credentials({ commonName: 'reader' })

/**
 * Resolves when the pod's own server says its name: at the address that it really has, of which the
 * API may not know yet.
 */
function answers(kubelet: Kubelet, name: string): Promise<void> {
  return until(
    `${name} to answer`,
    async () => {
      const address = (await kubelet.containers()).get(name)?.address()
      if (address === undefined) return false
      const response = await fetch(`http://${address}:8080/name`, {
        signal: AbortSignal.timeout(1000),
      })
      return (await response.text()).trim() === name || undefined
    },
    { seconds: 90 },
  ).then(() => undefined)
}
