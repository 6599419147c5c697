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
    namespaced('apps/v1', 'replicasets'),
    'web-1',
    { spec: { replicas: 2, selector, template: matching } },
    { replicas: 2, readyReplicas: 1 },
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
  made(namespaced('apps/v1', 'controllerrevisions'), 'db-1', {
    metadata: {
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'u', controller: true },
      ],
    },
    revision: 7,
    data: {},
  }),
  made(namespaced('apps/v1', 'controllerrevisions'), 'alone', { revision: 1, data: {} }),
  made(namespaced('v1', 'replicationcontrollers'), 'old', {
    spec: {
      replicas: 2,
      selector: { b: '2', app: 'web' },
      template: labelled({ app: 'web', b: '2' }),
    },
  }),
  made(namespaced('v1', 'podtemplates'), 'form', { template }),
  made(namespaced('batch/v1', 'jobs'), 'once', {
    spec: { completions: 3, suspend: true, template: jobTemplate },
  }),
  made(namespaced('batch/v1', 'jobs'), 'queue', {
    spec: { parallelism: 4, template: jobTemplate },
  }),
  made(namespaced('batch/v1', 'cronjobs'), 'nightly', {
    spec: {
      schedule: '0 3 * * *',
      timeZone: 'Etc/UTC',
      suspend: true,
      jobTemplate: { spec: { template: jobTemplate } },
    },
  }),
  made(
    namespaced('batch/v1', 'cronjobs'),
    'hourly',
    { spec: { schedule: '0 * * * *', jobTemplate: { spec: { template: jobTemplate } } } },
    { lastScheduleTime: at, active: [{ kind: 'Job', name: 'j' }] },
  ),
  made(
    namespaced('autoscaling/v2', 'horizontalpodautoscalers'),
    'web',
    {
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
        maxReplicas: 5,
        metrics: [
          {
            type: 'Resource',
            resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 60 } },
          },
          {
            type: 'Pods',
            pods: {
              metric: { name: 'rate' },
              target: { type: 'AverageValue', averageValue: '1k' },
            },
          },
          {
            type: 'External',
            external: { metric: { name: 'q' }, target: { type: 'Value', value: '3' } },
          },
        ],
      },
    },
    {
      currentReplicas: 1,
      desiredReplicas: 1,
      currentMetrics: [
        { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 12 } } },
      ],
    },
  ),
  made(namespaced('policy/v1', 'poddisruptionbudgets'), 'web', {
    spec: { minAvailable: '50%', selector: { matchLabels: { app: 'web' } } },
  }),
  made(namespaced('policy/v1', 'poddisruptionbudgets'), 'db', {
    spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'db' } } },
  }),
]

function labelled(labels: Readonly<Record<string, string>>): object {
  return { ...template, metadata: { labels } }
}

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
  made(namespaced('v1', 'endpoints'), 'many', {
    subsets: [
      {
        addresses: ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((ip) => ({ ip })),
        ports: [
          { name: 'a', port: 80 },
          { name: 'b', port: 81 },
        ],
      },
    ],
  }),
  made(namespaced('v1', 'endpoints'), 'none'),
  made(namespaced('v1', 'endpoints'), 'portless', {
    subsets: [{ addresses: [{ ip: '10.0.0.1' }] }],
  }),
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
  made(
    namespaced('networking.k8s.io/v1', 'ingresses'),
    'site',
    {
      spec: {
        ingressClassName: 'main',
        tls: [{ hosts: ['a.example'] }],
        rules: ['a', 'b', 'c', 'd', 'e'].map((host) => ({ host: `${host}.example` })),
      },
    },
    { loadBalancer: { ingress: [{ ip: '192.0.2.1' }, { hostname: 'lb.example' }] } },
  ),
  made(namespaced('networking.k8s.io/v1', 'ingresses'), 'any', {
    spec: { defaultBackend: { service: { name: 'plain', port: { number: 80 } } } },
  }),
  made(cluster('networking.k8s.io/v1', 'ingressclasses'), 'main', {
    metadata: { annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } },
    spec: {
      controller: 'example.com/main',
      parameters: { apiGroup: 'example.com', kind: 'Settings', name: 's' },
    },
  }),
  made(cluster('networking.k8s.io/v1', 'ingressclasses'), 'bare', {
    spec: { controller: 'example.com/bare' },
  }),
  made(namespaced('networking.k8s.io/v1', 'networkpolicies'), 'some', {
    spec: { podSelector: selector },
  }),
  made(namespaced('networking.k8s.io/v1', 'networkpolicies'), 'all', { spec: { podSelector: {} } }),
]

const storageClassPath = cluster('storage.k8s.io/v1', 'storageclasses')
const claims = namespaced('v1', 'persistentvolumeclaims')

const storage: readonly Made[] = [
  made(storageClassPath, 'fast', {
    metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: 'example.com/fast',
    reclaimPolicy: 'Retain',
    volumeBindingMode: 'WaitForFirstConsumer',
    allowVolumeExpansion: true,
  }),
  made(storageClassPath, 'plain', { provisioner: 'example.com/plain' }),
  made(
    cluster('v1', 'persistentvolumes'),
    'disk',
    {
      spec: {
        capacity: { storage: '10Gi' },
        accessModes: ['ReadWriteMany', 'ReadWriteOnce'],
        hostPath: { path: '/data' },
        storageClassName: 'fast',
        claimRef: { namespace: 'default', name: 'data' },
      },
    },
    { phase: 'Bound', reason: 'why' },
  ),
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
  made(cluster('storage.k8s.io/v1', 'volumeattachments'), 'va', {
    spec: {
      attacher: 'fast.example.com',
      nodeName: 'edge-1',
      source: { persistentVolumeName: 'disk' },
    },
  }),
  made(cluster('storage.k8s.io/v1', 'csidrivers'), 'driver.example.com', {
    spec: { attachRequired: false, podInfoOnMount: true, tokenRequests: [{ audience: 'a' }] },
  }),
  made(cluster('storage.k8s.io/v1', 'csidrivers'), 'plain.example.com', { spec: {} }),
  made(cluster('storage.k8s.io/v1', 'csinodes'), 'edge-1', {
    spec: { drivers: [{ name: 'driver.example.com', nodeID: 'n', topologyKeys: [] }] },
  }),
  made(namespaced('storage.k8s.io/v1', 'csistoragecapacities'), 'c', {
    storageClassName: 'fast',
    capacity: '100Gi',
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
  made(
    namespaced('v1', 'resourcequotas'),
    'q',
    { spec: { hard: { pods: '10', 'limits.cpu': '4' } } },
    {
      hard: { pods: '10', 'limits.cpu': '4', 'requests.cpu': '2' },
      used: { pods: '3', 'limits.cpu': '1', 'requests.cpu': '500m' },
    },
  ),
  made(namespaced('v1', 'limitranges'), 'l', { spec: { limits: [] } }),
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
  made(namespaced('events.k8s.io/v1', 'events'), 'new', {
    regarding: { kind: 'Pod', name: 'running', namespace: 'default' },
    reason: 'Killing',
    note: 'Killing it',
    type: 'Warning',
    eventTime: '2026-01-01T00:00:00.000000Z',
    action: 'Kill',
    reportingController: 'example.com/killer',
    reportingInstance: 'k-1',
    series: { count: 9, lastObservedTime: '2026-01-02T00:00:00.000000Z' },
  }),
  made(namespaced('coordination.k8s.io/v1', 'leases'), 'l', { spec: { holderIdentity: 'me' } }),
  made(cluster('node.k8s.io/v1', 'runtimeclasses'), 'kata', { handler: 'kata' }),
  made(cluster('scheduling.k8s.io/v1', 'priorityclasses'), 'p', {
    value: 10,
    preemptionPolicy: 'Never',
  }),
  made(namespaced('rbac.authorization.k8s.io/v1', 'roles'), 'r', { rules: [] }),
  made(namespaced('rbac.authorization.k8s.io/v1', 'rolebindings'), 'b', {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' },
    subjects: [
      { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'u' },
      { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'v' },
      { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'g' },
      { kind: 'ServiceAccount', name: 'default', namespace: 'default' },
    ],
  }),
  made(cluster('admissionregistration.k8s.io/v1', 'validatingadmissionpolicies'), 'v', {
    spec: {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      matchConstraints: {
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
        ],
      },
      validations: [{ expression: 'true' }],
      failurePolicy: 'Ignore',
    },
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

/** Objects of the kinds that have columns of their own. */
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
