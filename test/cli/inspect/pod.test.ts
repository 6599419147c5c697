import t from 'tap'
import { inspect } from '../../../src/cli/inspect/inspect.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { nodeName, nodes, pod, pods, podsOfNode } from '../../kit/cloud.ts'
import { goOffline, startCloud, startTestHub, type TestHub } from '../../kit/hub.ts'
import { until } from '../../kit/until.ts'
import { said, type Said } from '../../kit/terminal.ts'

const skip =
  process.platform === 'linux' && process.getuid?.() === 0 ? false : 'only root is shown content'

const run = ({ hub }: TestHub, ...argv: string[]): Promise<Said> =>
  said((terminal) => inspect.run(['pod', ...argv, `--serve-port=${hub.opsPort}`], terminal))

void t.test(
  'a pod is shown with its network and its clashing ports, also offline',
  { skip },
  async (t) => {
    const cloud = await startCloud(t)
    const node = cloud.sandbox.get(nodes, nodeName) as JsonObject & { metadata: JsonObject }
    const labels = {
      'apps.openyurt.io/nodepool': 'edge',
      'nodepool.openyurt.io/hostnetwork': 'true',
    }
    cloud.sandbox.update(nodes, { ...node, metadata: { ...node.metadata, labels } })
    const hub = await startTestHub(t, {
      upstreams: [cloud],
      flags: ['--plain-proxy=true', '--host-network-propagation=on'],
    })
    await hub.online()
    await until('the hub to know the pool', async () => {
      const { body } = await hub.ops.get('/inspect/host-network')
      return (JSON.parse(body.toString()) as JsonObject)['hostNetworkPool'] === true
    })
    for (const name of ['first', 'second']) {
      const ports = [{ containerPort: 18_080, protocol: 'TCP' }]
      const containers = [{ name: 'main', image: 'main', ports }]
      cloud.sandbox.create(pods, { ...pod(name), spec: { nodeName, containers } })
      t.equal((await hub.as('kubelet').get(podsOfNode)).status, 200)
    }
    await goOffline(cloud, hub)

    const first = await run(hub, 'default/first')
    t.equal(first.code, 1)
    t.match(first.out, "is on; the kubelet is shown the pod on the host's network, by propagation.")
    t.match(first.out, /^18080\/TCP +default\/second$/m)
    t.match(first.out, /^kubelet +edited +hostnetworkpropagation \(edited\)$/m)
    t.match(first.out, /^\+ {2}hostNetwork: true$/m)
    const json = JSON.parse((await run(hub, 'default/second', '-o', 'json')).out) as JsonObject
    t.match(json, { mode: 'on', network: { network: 'propagated', clashes: [{ port: 18_080 }] } })
    t.match(await run(hub, 'default/none'), { code: 1, out: /has read pods default\/none/ })
    t.match(await run(hub, 'first'), { code: 2, err: /NAMESPACE\/NAME/ })
  },
)
