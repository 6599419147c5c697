import t from 'tap'
import { allFilters } from '../../filters/index.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { filterContract, type Expectation, type Sample } from '../contracts/filters.ts'

const hubAddress = { host: '169.254.2.1', port: 10268, forService: true }
const pool = { name: 'hangzhou', type: 'Edge', hostNetwork: false, labels: {}, annotations: {} }

const named = (name: string, namespace: string, others: JsonObject = {}): JsonObject => ({
  name,
  namespace,
  uid: 'a6e6d5a5-0a0e-4c0e-8a6a-4b8f8e5a0c11',
  resourceVersion: '4711',
  creationTimestamp: '2026-11-21T10:16:51Z',
  ...others,
  managedFields: [
    {
      manager: 'kubectl',
      operation: 'Update',
      apiVersion: 'v1',
      time: '2026-11-21T10:16:51Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:spec': {} },
    },
  ],
})

const service = (type: string, metadata: JsonObject): JsonObject => ({
  kind: 'Service',
  apiVersion: 'v1',
  metadata,
  spec: {
    ports: [
      { name: 'http', protocol: 'TCP', port: 80, targetPort: 'web', nodePort: 30_080 },
      { name: 'https', protocol: 'TCP', port: 443, targetPort: 6443 },
    ],
    selector: { app: 'web' },
    clusterIP: '10.96.0.1',
    clusterIPs: ['10.96.0.1', 'fd00::1'],
    type,
    sessionAffinity: 'None',
  },
  status: { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } },
})

const slice = (
  version: string,
  metadata: JsonObject,
  on: (node: string) => JsonObject,
): JsonObject => ({
  kind: 'EndpointSlice',
  apiVersion: `discovery.k8s.io/${version}`,
  metadata,
  addressType: 'IPv4',
  endpoints: ['node-2', 'node-1', 'node-4', 'node-3'].map((node, at) => ({
    addresses: [`10.244.${at}.2`],
    conditions: { ready: true, serving: true, terminating: false },
    targetRef: { kind: 'Pod', namespace: 'default', name: `web-${at}` },
    hints: { forZones: [{ name: 'a' }, { name: 'b' }] },
    ...on(node),
  })),
  ports: [
    { name: 'http', protocol: 'TCP', port: 80 },
    { name: 'https', protocol: 'TCP', port: 6443 },
  ],
})

const ofWeb = named('web-xyz', 'default', { labels: { 'kubernetes.io/service-name': 'web' } })
const ofKubernetes = named('kubernetes', 'default', {
  labels: { 'kubernetes.io/service-name': 'kubernetes' },
})

const container = (name: string, host = '10.96.0.1', port = '443'): JsonObject => ({
  name,
  image: 'collector:1',
  ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
  env: [
    { name: 'KUBERNETES_SERVICE_HOST', value: host },
    { name: 'NODE', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'spec.nodeName' } } },
    { name: 'KUBERNETES_SERVICE_PORT', value: port },
  ],
  resources: { limits: { cpu: '100m' } },
})

const address = (node: string): JsonObject => ({
  ip: '10.244.1.2',
  nodeName: node,
  targetRef: { kind: 'Pod', namespace: 'default', name: `web-${node}` },
})

/** The expected object: unchanged except for these members of its `spec`. */
const withSpec = (object: JsonObject, spec: JsonObject): JsonObject => ({
  ...object,
  spec: { ...(object['spec'] as JsonObject), ...spec },
})

const withheld = (object: JsonObject): Expectation => ({ object, shown: 'withheld' })

/** The ports of `service` and `slice`, with the hub's where the API server's was. */
const hubPorts = (ports: Json | undefined): JsonObject[] =>
  (ports as JsonObject[]).map((each) =>
    each['name'] === 'https' ? { ...each, port: 10_268 } : each,
  )

/** The endpoints of `slice` with these numbers. */
const endpointsAt = (object: JsonObject, ...kept: readonly number[]): Expectation => ({
  object,
  shown: {
    ...object,
    endpoints: kept.map((at) => (object['endpoints'] as JsonObject[])[at] ?? null),
  },
})

const masterservice = service('ClusterIP', named('kubernetes', 'default'))

const ofCloud = slice('v1', ofKubernetes, () => ({}))

const endpoints: JsonObject = {
  kind: 'Endpoints',
  apiVersion: 'v1',
  metadata: named('near', 'default'),
  subsets: [
    {
      addresses: ['node-1', 'node-2', 'node-3'].map(address),
      notReadyAddresses: [address('node-2')],
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    },
    { notReadyAddresses: [address('node-4')], ports: [{ port: 81, protocol: 'TCP' }] },
  ],
}

const kubeProxyConfig = (config: string): JsonObject => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: named('kube-proxy', 'kube-system'),
  data: { 'config.conf': config, 'kubeconfig.conf': 'apiVersion: v1\n' },
})

const pendingPod: JsonObject = {
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: named('web', 'default', { labels: { app: 'web' } }),
  spec: { containers: [container('a')], nodeName: 'node-1', dnsPolicy: 'ClusterFirst' },
  status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True' }] },
}

/** A pod whose containers set this address of the API server. */
const podLedTo = (host: string, port: string): JsonObject => {
  const led = (name: string): JsonObject => container(name, host, port)
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: named('web', 'default', { labels: { app: 'web' } }),
    spec: {
      containers: [led('a'), led('b')],
      initContainers: [led('c')],
      ephemeralContainers: [{ ...led('d'), targetContainerName: 'a' }],
      nodeName: 'node-1',
      tolerations: [{ key: 'k', operator: 'Exists', tolerationSeconds: 300 }],
    },
    status: { phase: 'Running', podIPs: [{ ip: '10.244.1.2' }] },
  }
}

/** Inputs with which each filter acts, by its name. */
const samples: Readonly<Record<string, Sample>> = {
  discardcloudservice: {
    known: {},
    objects: [
      withheld(
        service(
          'LoadBalancer',
          named('a', 'b', { annotations: { 'svc.openyurt.io/discard': 'true' } }),
        ),
      ),
      withheld(service('ClusterIP', named('x-tunnel-server-internal-svc', 'kube-system'))),
    ],
  },
  nodeportisolation: {
    known: { pool },
    objects: [
      withheld(
        service(
          'NodePort',
          named('a', 'b', { annotations: { 'nodeport.openyurt.io/listen': '-hangzhou,*' } }),
        ),
      ),
    ],
  },
  servicetopology: {
    known: {
      pool,
      nodeName: 'node-1',
      poolNodes: ['node-1', 'node-3'],
      topologies: {
        'default/web': 'openyurt.io/nodepool',
        'default/near': 'kubernetes.io/hostname',
      },
    },
    objects: [
      // They are on node-2, node-1, node-4 and node-3.
      endpointsAt(
        slice('v1', ofWeb, (node) => ({ nodeName: node, zone: 'a' })),
        1,
        3,
      ),
      endpointsAt(
        slice('v1beta1', ofWeb, (node) => ({ topology: { 'kubernetes.io/hostname': node } })),
        1,
        3,
      ),
      {
        object: endpoints,
        shown: {
          ...endpoints,
          subsets: [
            {
              addresses: [address('node-1')],
              ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
            },
          ],
        },
      },
    ],
  },
  forwardkubesvctraffic: {
    known: { hubAddress },
    objects: [
      {
        object: ofCloud,
        shown: {
          ...ofCloud,
          endpoints: [{ addresses: ['169.254.2.1'], conditions: { ready: true } }],
          ports: hubPorts(ofCloud['ports']),
        },
      },
    ],
  },
  masterservice: {
    known: { hubAddress },
    objects: [
      {
        object: masterservice,
        shown: withSpec(masterservice, {
          clusterIP: '169.254.2.1',
          clusterIPs: ['169.254.2.1'],
          ports: hubPorts((masterservice['spec'] as JsonObject)['ports']),
        }),
      },
    ],
  },
  inclusterconfig: {
    known: {},
    objects: [
      {
        object: kubeProxyConfig(
          'clientConnection:\n  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf\n',
        ),
        shown: kubeProxyConfig(
          'clientConnection:\n  #kubeconfig: /var/lib/kube-proxy/kubeconfig.conf\n',
        ),
      },
    ],
  },
  hostnetworkpropagation: {
    known: { nodeName: 'node-1', propagation: 'on', pool: { ...pool, hostNetwork: true } },
    objects: [{ object: pendingPod, shown: withSpec(pendingPod, { hostNetwork: true }) }],
  },
  serviceenvupdater: {
    known: { hubAddress },
    objects: [{ object: podLedTo('10.96.0.1', '443'), shown: podLedTo('169.254.2.1', '10268') }],
  },
}

for (const definition of allFilters('on')) {
  void t.test(definition.name, async (t) => {
    const sample = samples[definition.name]
    // A filter without inputs here is untested.
    if (sample) filterContract(t, definition, sample)
    else t.fail('it has no sample here that makes it act')
  })
}
