import t from 'tap'
import { ApiClient } from '../kit/cluster/api-client.ts'
import { type HubProcess, startHubProcess } from '../kit/cluster/hub-process.ts'
import { until } from '../kit/cluster/until.ts'
import {
  type ControlPlane,
  administrator,
  noControlPlane,
  startControlPlane,
} from '../kit/control-plane.ts'
import { Load, type Read } from './load.ts'
import { busyboxPod } from './pod.ts'

t.setTimeout(240_000)

const skip = noControlPlane() ?? false
const kills = 10
const perSecond = 200
const pods = '/api/v1/namespaces/default/pods'
const json = { accept: 'application/json' }
const protobuf = { accept: 'application/vnd.kubernetes.protobuf,application/json' }

/** By a program whose answers are kept, and by one for which there is nothing but the cloud. */
const reads: readonly Read[] = ['kubelet/v1.36.2', 'reader/1.0'].flatMap((agent) => [
  { path: `${pods}/pod-1`, headers: { ...json, 'user-agent': agent } },
  { path: pods, headers: { ...protobuf, 'user-agent': agent } },
  { path: `${pods}?labelSelector=app%3Dpod-2`, headers: { ...json, 'user-agent': agent } },
  { path: '/api/v1/namespaces/default', headers: { ...protobuf, 'user-agent': agent } },
  { path: '/api/v1/services?resourceVersion=0', headers: { ...json, 'user-agent': agent } },
])

void t.test(
  'of two API servers one is killed ten times under load: no client sees an error',
  { skip, timeout: 240_000 },
  async (t) => {
    const plane = await startControlPlane(t, { apiservers: 2 })
    await makePods(plane)
    const hub = await startHubProcess(plane.workspace, {
      servers: plane.servers.map(({ url }) => url),
      kubeconfig: plane.kubeconfig(administrator),
      nodeName: 'edge-1',
    })
    await healthyUpstreams(hub, 2)
    const load = new Load(hub.url, reads, perSecond)
    t.teardown(() => load.stop())
    await load.answered(perSecond)

    for (let kill = 0; kill < kills; kill += 1) {
      // In turns, so that whichever a client was on is the one that goes.
      const server = plane.servers[kill % 2]
      if (!server) throw new Error('two API servers were started')
      const killedAt = performance.now()
      await server.daemon.kill()
      await load.answered(perSecond)
      const { count, nextMs, slowestMs } = load.between(killedAt, performance.now())
      t.comment(
        `kill ${kill + 1}: next answer after ${nextMs.toFixed(1)} ms, slowest of ${count}: ${slowestMs.toFixed(0)} ms`,
      )
      await server.daemon.start()
      await healthyUpstreams(hub, 2)
    }

    await load.stop()
    t.strictSame(load.errors, [])
    t.comment(`${load.samples.length} answers in all`)
  },
)

async function makePods(plane: ControlPlane): Promise<void> {
  await plane.admin.post('/api/v1/namespaces/default/serviceaccounts', {
    metadata: { name: 'default' },
  })
  for (let number = 0; number < 20; number += 1)
    await plane.admin.post(pods, busyboxPod(`pod-${number}`))
  await until('the pods to be listed', async () => {
    const { items } = (await plane.admin.get(pods)).json()
    return items?.length === 20
  })
}

/** Waits until the hub takes as many API servers for healthy. */
async function healthyUpstreams({ opsUrl }: HubProcess, wanted: number): Promise<void> {
  const ops = new ApiClient(opsUrl)
  await until(`${wanted} healthy upstreams`, async () => {
    const metrics = (await ops.get('/metrics')).body.toString()
    return (metrics.match(/^nodehub_upstream_healthy\{.*\} 1$/gm)?.length ?? 0) === wanted
  })
}
