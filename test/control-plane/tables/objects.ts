/** An object, the path of its collection, and the status that it gets afterwards. */
export interface Made {
  readonly path: string
  readonly name: string
  readonly object: Readonly<Record<string, unknown>>
  readonly status?: Readonly<Record<string, unknown>>
}

const namespaced = (apiVersion: string, resource: string): string =>
  `${rootOf(apiVersion)}/namespaces/default/${resource}`

const cluster = (apiVersion: string, resource: string): string =>
  `${rootOf(apiVersion)}/${resource}`

const rootOf = (apiVersion: string): string =>
  apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`

type Fields = Readonly<Record<string, unknown>> & { readonly metadata?: object }

const made = (
  path: string,
  name: string,
  { metadata, ...fields }: Fields = {},
  status?: Fields,
): Made => ({
  path,
  name,
  object: { metadata: { name, ...metadata }, ...fields },
  ...(status && { status }),
})

const ready = (status: string): object => ({ type: 'Ready', status })
const at = '2026-01-01T00:00:00Z'
const ended = (exitCode: number, more: object = {}): object => ({
  terminated: { exitCode, startedAt: at, finishedAt: at, ...more },
})
const container = (name: string, more: object = {}): object => ({
  name,
  image: `${name}:1`,
  ...more,
})
const stateOf = (name: string, state: object, more: object = {}): object => ({
  name,
  image: 'i',
  imageID: 'i',
  ready: false,
  restartCount: 0,
  state,
  ...more,
})
const running = { running: { startedAt: at } }

const pods = namespaced('v1', 'pods')

const pod = (name: string, status: Fields, spec: Fields = {}): Made =>
  made(
    pods,
    name,
    {
      spec: {
        containers: [container('one'), container('two')],
        automountServiceAccountToken: false,
        ...spec,
      },
    },
    status,
  )

const init = { initContainers: [container('first'), container('second')] }
const sidecar = { initContainers: [container('side', { restartPolicy: 'Always' })] }

/** Pods in every state that their Status column tells apart. */
const podsInStates: readonly Made[] = [
  pod('pending', {}),
  pod('running', {
    phase: 'Running',
    podIP: '10.0.0.1',
    podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }],
    conditions: [ready('True')],
    containerStatuses: [
      stateOf('one', running, { ready: true, restartCount: 3, lastState: ended(1) }),
      stateOf('two', running, { ready: true }),
    ],
  }),
  pod('waiting', {
    phase: 'Running',
    containerStatuses: [
      stateOf('one', { waiting: { reason: 'CrashLoopBackOff' } }, { restartCount: 2 }),
      stateOf('two', running, { ready: true }),
    ],
  }),
  pod('exited', { phase: 'Failed', containerStatuses: [stateOf('one', ended(3))] }),
  pod('signalled', {
    phase: 'Running',
    containerStatuses: [stateOf('one', ended(137, { signal: 9 }))],
  }),
  pod('completed', {
    phase: 'Succeeded',
    containerStatuses: [stateOf('one', ended(0, { reason: 'Completed' }))],
  }),
  pod('half', {
    phase: 'Running',
    conditions: [ready('True')],
    containerStatuses: [
      stateOf('one', ended(0, { reason: 'Completed' })),
      stateOf('two', running, { ready: true }),
    ],
  }),
  pod('half-unready', {
    phase: 'Running',
    conditions: [ready('False')],
    containerStatuses: [
      stateOf('one', ended(0, { reason: 'Completed' })),
      stateOf('two', running, { ready: true }),
    ],
  }),
  pod('half-failed', {
    phase: 'Running',
    containerStatuses: [
      stateOf('one', ended(0, { reason: 'Completed' })),
      stateOf('two', ended(1, { reason: 'Error' })),
    ],
  }),
  pod('evicted', { phase: 'Failed', reason: 'Evicted' }),
  pod(
    'init-waiting',
    {
      phase: 'Pending',
      initContainerStatuses: [
        stateOf('first', ended(0)),
        stateOf('second', { waiting: { reason: 'ImagePullBackOff' } }),
      ],
    },
    init,
  ),
  pod(
    'init-running',
    {
      phase: 'Pending',
      initContainerStatuses: [stateOf('first', ended(0)), stateOf('second', running)],
    },
    init,
  ),
  pod(
    'init-failed',
    {
      phase: 'Pending',
      initContainerStatuses: [stateOf('first', ended(2), { restartCount: 4, lastState: ended(2) })],
    },
    init,
  ),
  pod(
    'sidecar',
    {
      phase: 'Running',
      conditions: [ready('True'), { type: 'Initialized', status: 'True' }],
      initContainerStatuses: [
        stateOf('side', running, {
          ready: true,
          started: true,
          restartCount: 5,
          lastState: ended(1),
        }),
      ],
      containerStatuses: [stateOf('one', running, { ready: true })],
    },
    sidecar,
  ),
  pod(
    'gates',
    { phase: 'Running', conditions: [{ type: 'example.com/b', status: 'True' }] },
    { readinessGates: [{ conditionType: 'example.com/a' }, { conditionType: 'example.com/b' }] },
  ),
  pod('gated', {}, { schedulingGates: [{ name: 'example.com/wait' }] }),
  made(
    pods,
    'leaving',
    {
      metadata: { finalizers: ['example.com/hold'] },
      spec: { containers: [container('one')], automountServiceAccountToken: false },
    },
    { phase: 'Running' },
  ),
]

const template = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [container('one'), container('two')], restartPolicy: 'Always' },
}
const jobTemplate = { spec: { containers: [container('one')], restartPolicy: 'Never' } }
const selector = {
  matchLabels: { app: 'web' },
  matchExpressions: [
    { key: 'tier', operator: 'In', values: ['b', 'a'] },
    { key: 'zone', operator: 'NotIn', values: ['x'] },
    { key: 'kept', operator: 'Exists' },
    { key: 'gone', operator: 'DoesNotExist' },
  ],
}
const matching = {
  ...template,
  metadata: { labels: { app: 'web', tier: 'a', kept: '1' } },
}

const workloads: readonly Made[] = [
  made(
    namespaced('apps/v1', 'deployments'),
    'web',
    { spec: { replicas: 3, selector, template: matching } },
    { replicas: 3, readyReplicas: 1, updatedReplicas: 2, availableReplicas: 1 },
  ),
  made(
    namespaced('apps/v1', 'daemonsets'),
    'agent',
    {
      spec: {
        selector: { matchLabels: { app: 'web' } },
        template: { ...template, spec: { ...template.spec, nodeSelector: { b: '2', a: '1' } } },
      },
    },
    {
      desiredNumberScheduled: 3,
      currentNumberScheduled: 2,
      numberReady: 1,
      numberMisscheduled: 0,
      updatedNumberScheduled: 2,
    },
  ),
  made(
    namespaced('apps/v1', 'statefulsets'),
    'db',
    {
      spec: { serviceName: 'db', replicas: 2, selector: { matchLabels: { app: 'web' } }, template },
    },
    { replicas: 2, readyReplicas: 1 },
  ),
  made(namespaced('batch/v1', 'jobs'), 'once', {
    spec: { completions: 3, suspend: true, template: jobTemplate },
  }),
  made(namespaced('batch/v1', 'jobs'), 'queue', {
    spec: { parallelism: 4, template: jobTemplate },
  }),
]

const services = namespaced('v1', 'services')
const port = (number: number, more: object = {}): object => ({
  name: `p${number}`,
  port: number,
  ...more,
})

const networking: readonly Made[] = [
  made(services, 'plain', {
    spec: { selector: { b: '2', a: '1' }, ports: [port(80), port(53, { protocol: 'UDP' })] },
  }),
  made(services, 'headless', { spec: { clusterIP: 'None', selector: { a: '1' } } }),
  made(services, 'given', { spec: { ports: [port(80)], externalIPs: ['192.0.2.1', '192.0.2.2'] } }),
  made(services, 'on-nodes', {
    spec: { type: 'NodePort', ports: [port(80, { nodePort: 30_080 })] },
  }),
  made(services, 'waiting', { spec: { type: 'LoadBalancer', ports: [port(80)] } }),
  made(
    services,
    'balanced',
    { spec: { type: 'LoadBalancer', ports: [port(80)], externalIPs: ['192.0.2.3'] } },
    { loadBalancer: { ingress: [{ ip: '192.0.2.9' }, { hostname: 'lb.example' }] } },
  ),
  made(services, 'elsewhere', { spec: { type: 'ExternalName', externalName: 'db.example' } }),
  made(namespaced('discovery.k8s.io/v1', 'endpointslices'), 'few', {
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'] }, { addresses: ['10.0.0.2'] }],
    ports: [{ name: 'a', port: 80 }, { name: 'b' }],
  }),
  made(namespaced('discovery.k8s.io/v1', 'endpointslices'), 'many', {
    addressType: 'IPv4',
    endpoints: ['1', '2', '3', '4', '5'].map((last) => ({ addresses: [`10.0.0.${last}`] })),
    ports: [],
  }),
  made(namespaced('networking.k8s.io/v1', 'networkpolicies'), 'all', { spec: { podSelector: {} } }),
]

const claims = namespaced('v1', 'persistentvolumeclaims')

const storage: readonly Made[] = [
  made(
    claims,
    'data',
    {
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'fast',
        volumeName: 'disk',
        resources: { requests: { storage: '5Gi' } },
      },
    },
    { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '10Gi' } },
  ),
  made(claims, 'unbound', {
    metadata: { annotations: { 'volume.beta.kubernetes.io/storage-class': 'old' } },
    spec: { accessModes: ['ReadWriteOncePod'], resources: { requests: { storage: '1Gi' } } },
  }),
]

const rest: readonly Made[] = [
  made(
    cluster('v1', 'nodes'),
    'edge-1',
    {
      metadata: {
        labels: {
          'node-role.kubernetes.io/edge': '',
          'node-role.kubernetes.io/a': '',
          'kubernetes.io/role': 'z',
        },
      },
      spec: { unschedulable: true },
    },
    {
      conditions: [ready('True')],
      addresses: [
        { type: 'InternalIP', address: '10.1.0.1' },
        { type: 'ExternalIP', address: '192.0.2.1' },
      ],
      nodeInfo: {
        machineID: '',
        systemUUID: '',
        bootID: '',
        kernelVersion: '6.1',
        osImage: 'Linux',
        containerRuntimeVersion: 'containerd://2',
        kubeletVersion: 'v1.36.0',
        kubeProxyVersion: '',
        operatingSystem: 'linux',
        architecture: 'amd64',
      },
    },
  ),
  made(cluster('v1', 'nodes'), 'bare'),
  made(namespaced('v1', 'configmaps'), 'c', { data: { a: '1' }, binaryData: { b: 'AA==' } }),
  made(namespaced('v1', 'secrets'), 's', { stringData: { a: '1', b: '2' } }),
  made(namespaced('v1', 'events'), 'old', {
    involvedObject: { kind: 'Pod', name: 'running', namespace: 'default', fieldPath: 'spec.x' },
    reason: 'Started',
    message: ' Started it \n',
    type: 'Normal',
    source: { component: 'kubelet', host: 'edge-1' },
    firstTimestamp: at,
    lastTimestamp: at,
    count: 4,
  }),
  made(cluster('apiextensions.k8s.io/v1', 'customresourcedefinitions'), 'pumps.plant.example', {
    spec: {
      group: 'plant.example',
      scope: 'Namespaced',
      names: { kind: 'Pump', plural: 'pumps', singular: 'pump' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          },
          additionalPrinterColumns: [
            { name: 'Pressure', type: 'integer', jsonPath: '.spec.pressure' },
            { name: 'Level', type: 'number', jsonPath: '.spec.level' },
            { name: 'Open', type: 'boolean', jsonPath: '.spec.open', priority: 1 },
            { name: 'Since', type: 'date', jsonPath: '.spec.since' },
            { name: 'Wrong', type: 'integer', jsonPath: '.spec.name' },
            { name: 'Second', type: 'string', jsonPath: '.spec.valves[1].name' },
            { name: 'Whole', type: 'string', jsonPath: '.spec.valves[0]' },
            {
              name: 'Ready',
              type: 'string',
              jsonPath: '.spec.conditions[?(@.type=="Ready")].status',
            },
            { name: 'Quoted', type: 'string', jsonPath: ".metadata.annotations['a\\.b/c']" },
            { name: 'Escaped', type: 'string', jsonPath: '.metadata.annotations.a\\.b/c' },
            { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
          ],
        },
      ],
    },
  }),
]

/** Objects of the kinds that have columns of their own, and a NetworkPolicy, which has none. */
export const objects: readonly Made[] = [
  ...podsInStates,
  ...workloads,
  ...networking,
  ...storage,
  ...rest,
]

const pumpType = { kind: 'Pump', apiVersion: 'plant.example/v1' }

/** Custom resources, to be made once their definition is established. */
export const pumps: readonly Made[] = [
  made(namespaced('plant.example/v1', 'pumps'), 'full', {
    ...pumpType,
    metadata: { annotations: { 'a.b/c': 'x' } },
    spec: {
      pressure: 7,
      level: 0.5,
      open: true,
      since: at,
      name: 'n',
      valves: [{ name: 'v0' }, { name: 'v1' }],
      conditions: [
        { type: 'Wet', status: 'False' },
        { type: 'Ready', status: 'True' },
      ],
    },
  }),
  made(namespaced('plant.example/v1', 'pumps'), 'bare', {
    ...pumpType,
    spec: { since: 'never' },
  }),
]
