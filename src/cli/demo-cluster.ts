import { now } from '../base/clock.ts'
import type { GVR } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'
import {
  configMaps,
  csiNodes,
  endpointSlices,
  nodes,
  pods,
  services,
} from '../api/kube/resources.ts'
import { timestamp, type KubeObject } from '../sandbox/object.ts'
import { ClientInformer } from '../sandbox/client-informer.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'

export const nodeName = 'edge-1'

const namespaces: GVR = { group: '', version: 'v1', resource: 'namespaces' }

const workloads = [
  { namespace: 'plant', name: 'collector', replicas: 3, port: 9100, clusterIP: '10.96.10.1' },
  { namespace: 'plant', name: 'dashboard', replicas: 2, port: 8080, clusterIP: '10.96.10.2' },
  { namespace: 'warehouse', name: 'scanner', replicas: 4, port: 7000, clusterIP: '10.96.10.3' },
] as const

/** Fills a cluster with typical objects of an edge site: a node, its pods, services, settings. */
export function seedCluster(sandbox: Sandbox): void {
  const at = timestamp(now())
  withStatus(sandbox, nodes, {
    metadata: {
      name: nodeName,
      labels: { 'kubernetes.io/hostname': nodeName, 'kubernetes.io/os': 'linux' },
    },
    status: {
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          lastHeartbeatTime: at,
          lastTransitionTime: at,
          reason: 'KubeletReady',
          message: 'simulated',
        },
      ],
      addresses: [{ type: 'InternalIP', address: '192.0.2.10' }],
      capacity: { cpu: '4', memory: '8Gi', pods: '110' },
      allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
      nodeInfo: { kubeletVersion: 'v1.35.0', osImage: 'simulated', architecture: 'amd64' },
    },
  })
  sandbox.create(csiNodes, { metadata: { name: nodeName }, spec: { drivers: [] } })
  sandbox.create(services, {
    metadata: { name: 'kubernetes', namespace: 'default' },
    spec: {
      clusterIP: '10.96.0.1',
      clusterIPs: ['10.96.0.1'],
      ports: [{ name: 'https', port: 443, targetPort: 6443 }],
    },
  })
  for (const namespace of new Set(workloads.map(({ namespace }) => namespace))) {
    sandbox.create(namespaces, { metadata: { name: namespace } })
    sandbox.create(configMaps, {
      metadata: { name: 'settings', namespace },
      data: { interval: '10s', site: namespace },
    })
  }
  for (const workload of workloads) seedWorkload(sandbox, workload, at)
}

/** A create ignores status; it is written afterwards. */
function withStatus(sandbox: Sandbox, gvr: GVR, object: JsonObject): KubeObject {
  const created = sandbox.create(gvr, object)
  return sandbox.update(gvr, { ...created, status: object['status'] ?? {} }, 'status')
}

function seedWorkload(
  sandbox: Sandbox,
  workload: (typeof workloads)[number],
  startedAt: string,
): void {
  const { namespace, name, replicas, port, clusterIP } = workload
  const addresses = Array.from(
    { length: replicas },
    (_, i) => `10.244.${clusterIP.split('.')[3]}.${i + 2}`,
  )
  addresses.forEach((podIP, i) => {
    withStatus(sandbox, pods, {
      metadata: { name: `${name}-${i}`, namespace, labels: { app: name } },
      spec: {
        nodeName,
        containers: [
          { name: 'main', image: `registry.example/${name}:1.0`, ports: [{ containerPort: port }] },
        ],
        volumes: [{ name: 'settings', configMap: { name: 'settings' } }],
      },
      status: {
        phase: 'Running',
        podIP,
        podIPs: [{ ip: podIP }],
        conditions: [{ type: 'Ready', status: 'True' }],
        containerStatuses: [
          {
            name: 'main',
            ready: true,
            restartCount: 0,
            image: `registry.example/${name}:1.0`,
            imageID: '',
            started: true,
            state: { running: { startedAt } },
          },
        ],
      },
    })
    sandbox.log(namespace, `${name}-${i}`, `${startedAt} listening on ${port}\n`)
  })
  sandbox.create(services, {
    metadata: { name, namespace, labels: { app: name } },
    spec: {
      selector: { app: name },
      clusterIP,
      clusterIPs: [clusterIP],
      ports: [{ name: 'main', port, targetPort: port }],
    },
  })
  sandbox.create(endpointSlices, {
    metadata: { name: `${name}-1`, namespace, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    endpoints: [
      ...addresses.map((address) => ({ addresses: [address], nodeName })),
      { addresses: [`10.244.200.${clusterIP.split('.')[3]}`], nodeName: 'edge-2' },
    ].map((endpoint) => ({ ...endpoint, conditions: { ready: true } })),
    ports: [{ name: 'main', port, protocol: 'TCP' }],
  })
}

/** The programs of a node. */
export interface SimulatedNode extends AsyncDisposable {
  /** The number of pods that the kubelet knows; `undefined` until it has listed them. */
  readonly pods: number | undefined
}

/** A node's kubelet and kube-proxy as the API server sees them: their lists and watches. */
export function simulateNode(server: string): SimulatedNode {
  const parts = new AsyncDisposableStack()
  const kubelet = {
    server,
    userAgent: 'kubelet/v1.35.0 (linux/amd64)',
    encoding: 'protobuf',
  } as const
  const kubeProxy = {
    server,
    userAgent: 'kube-proxy/v1.35.0 (linux/amd64)',
    encoding: 'protobuf',
  } as const
  const notHeadless = '!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name'
  const ownPods = parts.use(
    new ClientInformer({
      ...kubelet,
      path: '/api/v1/pods',
      query: { fieldSelector: `spec.nodeName=${nodeName}` },
    }),
  )
  const reflected = [
    { ...kubelet, path: '/api/v1/nodes', query: { fieldSelector: `metadata.name=${nodeName}` } },
    { ...kubelet, path: '/api/v1/services', query: { fieldSelector: 'spec.clusterIP!=None' } },
    { ...kubelet, path: '/apis/storage.k8s.io/v1/csidrivers' },
    { ...kubelet, path: '/apis/node.k8s.io/v1/runtimeclasses' },
    { ...kubeProxy, path: '/api/v1/services', query: { labelSelector: notHeadless } },
    {
      ...kubeProxy,
      path: '/apis/discovery.k8s.io/v1/endpointslices',
      query: { labelSelector: notHeadless },
    },
  ]
  for (const options of reflected) parts.use(new ClientInformer(options))
  return {
    get pods() {
      return ownPods.synced ? ownPods.items.size : undefined
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}
