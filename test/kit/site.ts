import type { IssuedCertificate } from '../../src/certificates/authority.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import type { Client } from './client.ts'
import { nodeName, nodes, pod, pods, podsOfNode } from './cloud.ts'
import { goOffline, startCloud, startTestHub, type CloudServer, type TestHub } from './hub.ts'
import { startKubeletApi, type KubeletApi, type KubeletApiOptions } from './kubelet-api.ts'
import type { Teardown } from './wire/wire.ts'

export interface Site {
  /** The kubelet's certificate, and its key. */
  readonly own: IssuedCertificate
  readonly cloud: CloudServer
  readonly hub: TestHub
  readonly kubelet: KubeletApi
}

/** A node with a pod, whose kubelet has read what it needs, and whose link is cut. */
export async function startSite(
  t: Teardown,
  serving: Partial<KubeletApiOptions> = {},
): Promise<Site> {
  const cloud = await startCloud(t, { tls: true })
  const own = await cloud.sandbox.clientCertificate(`system:node:${nodeName}`, ['system:nodes'])
  const started: { hub?: TestHub } = {}
  const kubelet = await startKubeletApi(t, {
    nodeName,
    clientCa: cloud.sandbox.caCertificate ?? '',
    reviews: () => started.hub!.as('kubelet'),
    answer: (_request, response) => response.end('a line\n'),
    ...serving,
  })
  const node = cloud.sandbox.get(nodes, nodeName)!
  const status = { daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } } }
  cloud.sandbox.update(nodes, { ...node, status }, 'status')
  cloud.addPods('a')
  cloud.sandbox.create(pods, pod('two', two))
  const hub = await startTestHub(t, { upstreams: [cloud] })
  started.hub = hub
  const client = hub.as('kubelet', { encoding: 'protobuf' })
  await client.list('/api/v1/nodes')
  await client.list(podsOfNode)
  await goOffline(cloud, hub)
  return { own, cloud, hub, kubelet }
}

const two: JsonObject = {
  spec: {
    nodeName,
    containers: [
      { name: 'main', image: 'i' },
      { name: 'side', image: 'i' },
    ],
  },
}

/** kubectl with the kubelet's certificate. */
export const asRoot = ({ own, hub }: Site): Client => hub.securelyAs('kubectl', own)
