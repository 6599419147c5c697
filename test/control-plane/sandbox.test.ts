import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { isList, isObject, type Json } from '../../src/api/kube/json.ts'
import { initialEventsEndAnnotation } from '../../src/api/kube/object.ts'
import { fromProtobuf } from '../../src/sandbox/protobuf.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { versionBefore } from '../kit/cluster/releases.ts'
import { administrator, noControlPlane, startControlPlane } from '../kit/control-plane.ts'
import { Client, type Answer, type RequestOptions } from '../kit/client.ts'

/** What the API server in memory answers as. */
const likeness = '1.35'
const older = versionBefore(likeness)
const skip =
  noControlPlane() ??
  (older &&
    `the API server in memory answers as Kubernetes ${likeness}: ${older} has no generation of pods, no WatchList by default, or other words`) ??
  false

const write = (method: string, body: unknown, type = 'application/json'): RequestOptions => ({
  method,
  headers: { 'Content-Type': type, Accept: 'application/json' },
  body: typeof body === 'string' ? body : JSON.stringify(body),
})

const home = '/api/v1/namespaces/side'
const maps = `${home}/configmaps`
const pods = `${home}/pods`
const tolerations = ['not-ready', 'unreachable'].map((state) => ({
  key: `node.kubernetes.io/${state}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
}))
/** Whole: the API server in memory sets few defaults. */
const pod = (name: string, spec: object = { nodeName: 'n1' }, container: object = {}) => ({
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name, labels: { app: 'a' } },
  spec: {
    automountServiceAccountToken: false,
    containers: [
      {
        name: 'c',
        image: 'i:1',
        imagePullPolicy: 'IfNotPresent',
        resources: {},
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
        ...container,
      },
    ],
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    serviceAccountName: 'default',
    serviceAccount: 'default',
    securityContext: {},
    schedulerName: 'default-scheduler',
    tolerations,
    priority: 0,
    enableServiceLinks: true,
    preemptionPolicy: 'PreemptLowerPriority',
    ...spec,
  },
})
const map = (name: string, more: object = {}) => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name, ...more },
  data: { a: '1' },
})
const lease = (metadata: object, seconds: number) => ({
  kind: 'Lease',
  apiVersion: 'coordination.k8s.io/v1',
  metadata,
  spec: { holderIdentity: 'n1', leaseDurationSeconds: seconds },
})
const leases = '/apis/coordination.k8s.io/v1/namespaces/side/leases'
const table = { Accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
const protobuf = { Accept: 'application/vnd.kubernetes.protobuf' }

const time = '2026-01-02T03:04:05Z'
const condition = (type: string, rest: object): object => ({
  type,
  lastTransitionTime: time,
  ...rest,
})

/** What a kubelet writes of its node, and of a pod. */
const kubeletPatches: readonly (readonly [path: string, status: object])[] = [
  [
    '/api/v1/nodes/n1',
    {
      capacity: { cpu: '4', memory: '8Gi', 'hugepages-2Mi': '0' },
      allocatable: { cpu: '3800m', memory: '7Gi' },
      conditions: ['MemoryPressure', 'Ready'].map((type) =>
        condition(type, { status: 'False', lastHeartbeatTime: time, reason: 'R', message: 'm' }),
      ),
      addresses: [
        { type: 'InternalIP', address: '10.0.0.1' },
        { type: 'Hostname', address: 'n1' },
      ],
      images: [{ names: ['a:1', 'a@sha256:1'], sizeBytes: 5_000_000_000 }],
    },
  ],
  [
    '/api/v1/nodes/n1',
    {
      '$setElementOrder/conditions': [{ type: 'MemoryPressure' }, { type: 'Ready' }],
      conditions: [
        { type: 'MemoryPressure', lastHeartbeatTime: '2026-01-02T03:05:05Z' },
        { type: 'Ready', status: 'True', reason: 'KubeletReady', message: null },
      ],
      addresses: [{ $patch: 'replace' }, { type: 'InternalIP', address: '10.0.0.9' }],
      capacity: { 'hugepages-2Mi': null },
      volumesInUse: ['kubernetes.io/csi/disk.example.com^v1'],
    },
  ],
  [
    `${pods}/p1`,
    {
      podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::7' }],
      '$setElementOrder/conditions': [{ type: 'Ready' }],
      conditions: [condition('Ready', { status: 'True', lastProbeTime: null })],
      containerStatuses: [
        {
          name: 'c',
          image: 'i:1',
          imageID: 'sha256:1',
          ready: true,
          started: true,
          restartCount: 2,
          state: { running: { startedAt: time } },
          lastState: { terminated: { exitCode: 137, finishedAt: time, startedAt: time } },
        },
      ],
    },
  ],
]

/** Sent to both in this order. */
const requests: readonly (readonly [path: string, request?: RequestOptions])[] = [
  [
    '/api/v1/namespaces',
    write('POST', {
      metadata: { name: 'side', labels: { 'kubernetes.io/metadata.name': 'side' } },
      spec: { finalizers: ['kubernetes'] },
    }),
  ],
  ['/api/v1/namespaces/side'],
  [`${home}/serviceaccounts`, write('POST', { metadata: { name: 'default' } })],
  [
    '/api/v1/nodes',
    write('POST', {
      kind: 'Node',
      apiVersion: 'v1',
      metadata: { name: 'n1' },
      spec: {
        podCIDR: '10.1.0.0/24',
        podCIDRs: ['10.1.0.0/24'],
        taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }],
      },
    }),
  ],
  ['/api/v1/nodes', write('POST', { kind: 'Node', apiVersion: 'v1', metadata: { name: 'n1' } })],
  // Lists and gets of versions and selectors.
  [maps],
  [maps, write('POST', map('one', { labels: { x: '1' } }))],
  [maps, write('POST', map('two', { labels: { x: '2' } }))],
  [maps, write('POST', map('one'))],
  [maps, write('POST', map('Bad_Name'))],
  [maps, write('POST', { kind: 'ConfigMap', apiVersion: 'v1', metadata: {} })],
  [maps, write('POST', map('three', { namespace: 'elsewhere' }))],
  ['/api/v1/namespaces/nowhere/configmaps', write('POST', map('three'))],
  [maps, write('POST', pod('three'))],
  [maps, write('POST', map('typed', {}), 'text/plain')],
  [`${maps}?labelSelector=x%3D1`],
  [`${maps}?labelSelector=x+in+(1,2),!y`],
  [`${maps}?labelSelector=x>1`],
  [`${maps}?fieldSelector=metadata.name%3Dtwo`],
  [`${maps}?fieldSelector=metadata.name!%3Dtwo`],
  [`${maps}?fieldSelector=data.a%3D1`],
  [`${maps}?fieldSelector=bad`],
  [`${maps}?fieldSelector=metadata.name%3Da%3Db`],
  [`${maps}?labelSelector=a+in+()`],
  [`${maps}?resourceVersion=abc`],
  [`${maps}?resourceVersion=0`],
  [`${maps}?limit=1&resourceVersion=0`],
  [`${maps}?resourceVersion=0&resourceVersionMatch=Exact`],
  [`${maps}?resourceVersion=1&resourceVersionMatch=Nonsense`],
  [`${maps}?sendInitialEvents=true`],
  [`${maps}?watch=1&sendInitialEvents=true`],
  [`${maps}?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact`],
  [`${maps}?watch=1&resourceVersion=abc`],
  [`${maps}/one?resourceVersion=abc`],
  [`${maps}?limit=abc`],
  [`${maps}?pretty=true`],
  [`${maps}/one?pretty=1`],
  [maps, { headers: { Accept: 'application/json', 'User-Agent': 'curl/8' } }],
  // Forms.
  [maps, { headers: table }],
  [`${maps}?includeObject=None`, { headers: table }],
  [`${maps}?includeObject=Object`, { headers: table }],
  [`${maps}/one`, { headers: table }],
  ['/api/v1/nodes', { headers: table }],
  ['/api/v1/namespaces?labelSelector=kubernetes.io/metadata.name=side', { headers: table }],
  [maps, { headers: protobuf }],
  [`${maps}/none`, { headers: protobuf }],
  [
    maps,
    { headers: { Accept: 'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io' } },
  ],
  [maps, { headers: { Accept: 'application/json;as=Nonsense;v=v1;g=meta.k8s.io' } }],
  [
    maps,
    { headers: { Accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' } },
  ],
  [
    `${maps}/one`,
    { headers: { Accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' } },
  ],
  [`${maps}/one`, { headers: { Accept: 'text/html' } }],
  // Updates.
  [`${maps}/one`, write('PUT', map('one', { labels: { x: '3' } }))],
  [`${maps}/one`, write('PUT', map('two'))],
  [`${maps}/none`, write('PUT', map('none'))],
  [`${maps}/one`, write('PUT', map('one', { uid: '00000000-0000-0000-0000-000000000000' }))],
  [`${maps}/one`, write('PUT', map('one', { resourceVersion: '1' }))],
  [`${maps}/one`, write('PATCH', { data: { b: '2' } }, 'application/merge-patch+json')],
  [`${maps}/one`, write('PATCH', { data: { c: '3' } }, 'application/strategic-merge-patch+json')],
  [`${maps}/one`, write('PATCH', {}, 'application/json')],
  [`${maps}/none`, write('PATCH', {}, 'application/merge-patch+json')],
  [maps, write('PATCH', {}, 'application/merge-patch+json')],
  [maps, write('PUT', map('one'))],
  // Leases may be created by an update.
  [`${leases}/n1`, write('PUT', lease({ name: 'n1' }, 40))],
  // Pods and their end.
  [pods, write('POST', pod('p1'))],
  [
    pods,
    write(
      'POST',
      pod(
        'p2',
        { nodeName: 'n1', hostNetwork: true },
        { ports: [{ hostPort: 80, containerPort: 80, protocol: 'TCP' }] },
      ),
    ),
  ],
  [pods, write('POST', pod('p3', {}))],
  [`${pods}?fieldSelector=spec.nodeName%3Dn1,spec.hostNetwork%3Dtrue`],
  [`${pods}?fieldSelector=spec.nodeName%3D`],
  [`${pods}?fieldSelector=spec.host%3Dn1`],
  [`${pods}?fieldSelector=status.podIPs!%3D10.0.0.1`],
  ['/api/v1/nodes?fieldSelector=metadata.namespace%3Ddefault'],
  ['/apis/apps/v1/replicasets?fieldSelector=status.replicas%3D0'],
  [`${pods}?fieldSelector=status.phase!%3DPending`],
  [pods, { headers: table }],
  [`${pods}/p1/status`],
  [`${pods}/p1/nonsense`],
  [
    `${pods}/p1/status`,
    write(
      'PATCH',
      { status: { phase: 'Running', podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }] } },
      'application/strategic-merge-patch+json',
    ),
  ],
  // As kubelets write them; a hub answers them so without an API server.
  ...kubeletPatches.map(([path, status]): [string, RequestOptions] => [
    `${path}/status`,
    write('PATCH', { status }, 'application/strategic-merge-patch+json'),
  ]),
  [`${pods}/p1`, { method: 'DELETE' }],
  [`${pods}/p1`],
  [`${pods}/p1`, write('DELETE', { gracePeriodSeconds: 0 })],
  [`${pods}/p1`],
  [`${pods}/p3`, { method: 'DELETE' }],
  [`${pods}/p3`],
  [`${pods}/none`, { method: 'DELETE' }],
  [
    `${home}/services`,
    write('POST', {
      metadata: { name: 's' },
      spec: {
        type: 'ClusterIP',
        clusterIP: 'None',
        clusterIPs: ['None'],
        ipFamilies: ['IPv4'],
        ipFamilyPolicy: 'SingleStack',
        internalTrafficPolicy: 'Cluster',
        sessionAffinity: 'None',
        selector: { app: 'a' },
        ports: [{ port: 80, targetPort: 80, protocol: 'TCP' }],
      },
    }),
  ],
  [`${home}/services`, { headers: table }],
  [`${home}/services/s`, { method: 'DELETE' }],
  [
    `${home}/secrets`,
    write('POST', { metadata: { name: 's' }, type: 'Opaque', data: { a: 'Yg==' } }),
  ],
  [`${home}/secrets?fieldSelector=type%3DOpaque`],
  [`${home}/secrets`, { headers: table }],
  [`${maps}/two`, { method: 'DELETE' }],
  // One with finalizers goes when the last is removed.
  [maps, write('POST', map('held', { finalizers: ['example.com/hold'] }))],
  [`${maps}/held`, { method: 'DELETE' }],
  [`${maps}/held`],
  [
    `${maps}/held`,
    write('PATCH', { metadata: { finalizers: null } }, 'application/merge-patch+json'),
  ],
  [`${maps}/held`],
  [`${maps}?labelSelector=x%3D3`, { method: 'DELETE' }],
  // What is no resource, and what is not served.
  ['/api'],
  ['/apis/apps'],
  ['/apis/coordination.k8s.io/v1'],
  ['/apis/none'],
  ['/apis/none/v1'],
  ['/apis/none/v1/things'],
  ['/apis/apps/v1/nothing'],
  ['/healthz'],
  ['/livez'],
  ['/readyz'],
  ['/nothing'],
  ['/api/v1/configmaps', write('POST', map('nowhere'))],
  [`${maps}/one`, write('POST', map('one'))],
  ['/api/v1/namespaces', { method: 'DELETE' }],
  ['/apis/authentication.k8s.io/v1/selfsubjectreviews'],
  [
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    write('POST', {
      kind: 'SelfSubjectAccessReview',
      apiVersion: 'authorization.k8s.io/v1',
      spec: { resourceAttributes: { verb: 'get', resource: 'pods' } },
    }),
  ],
]

const masked = new Set([
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'deletionTimestamp',
  'renewTime',
  'remainingItemCount',
  'serverAddress',
  'time',
])

/**
 * Who owns which field is told of server-side apply alone; columns of tables are described for pods
 * alone.
 */
const untold = new Set(['managedFields', 'storageVersionHash', 'description', 'qosClass'])

function masking(value: Json): Json {
  if (isList(value)) return value.map(masking)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !untold.has(name))
      // RBAC says which rule allowed it.
      .filter(([name]) => !(name === 'reason' && 'allowed' in value))
      .map(([name, member]) => [
        name,
        masked.has(name) && typeof member === 'string' ? name : masking(member),
      ]),
  )
}

function shown({ status, headers, body: bytes }: Answer): Json {
  const text = bytes.toString()
  const type = headers['content-type'] ?? ''
  const body = type.startsWith('application/vnd.kubernetes.protobuf')
    ? masking(fromProtobuf(bytes).object)
    : type.startsWith('application/json')
      ? masking(JSON.parse(text) as Json)
      : text
  return {
    status,
    type,
    pretty: type.startsWith('application/json') && text.includes('\n  "'),
    warning: headers['warning'] ?? '',
    allow: headers['allow'] ?? '',
    // Uids and versions stand in texts too.
    body: JSON.parse(
      JSON.stringify(body)
        .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'uid')
        .replace(/"[0-9]+(s|m)"/g, '"age"'),
    ) as Json,
  }
}

/** A real API server, and a sandbox beside it. */
async function both(t: Test): Promise<{ real: Client; ours: Client }> {
  const plane = await startControlPlane(t)
  const files = plane.credentials(administrator)
  const sandbox = await startSandbox()
  t.teardown(() => sandbox[Symbol.asyncDispose]())
  const component = 'tester'
  const [ca, cert, key] = [plane.pki.ca.certificate, files.certificate, files.key].map((file) =>
    readFileSync(file, 'utf8'),
  ) as [string, string, string]
  const { certificate, ...own } = await sandbox.clientCertificate('admin', ['system:masters'])
  return {
    real: new Client({ url: plane.url, component, tls: { ca, cert, key } }),
    ours: new Client({
      url: sandbox.url,
      component,
      tls: { ca: sandbox.caCertificate ?? '', cert: certificate, ...own },
    }),
  }
}

/** Watches of three config maps; each ends after a second. */
const watches: readonly (readonly [query: string, headers?: Record<string, string>])[] = [
  [''],
  ['&resourceVersion=0'],
  ['&allowWatchBookmarks=true'],
  ['&resourceVersion=0&allowWatchBookmarks=true'],
  ['&labelSelector=x%3D1'],
  ['&fieldSelector=metadata.name%3Dtwo'],
  ['&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'],
  ['&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'],
  [
    '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1&allowWatchBookmarks=true',
  ],
  ['&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'],
  ['&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true', table],
  [
    '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
    { Accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' },
  ],
]

void t.test(
  'the sandbox sends a kube-apiserver’s watch events',
  { skip, timeout: 110_000 },
  async (t) => {
    const { real, ours } = await both(t)
    const seed = async (client: Client): Promise<void> => {
      await client.send('/api/v1/namespaces', write('POST', { metadata: { name: 'side' } }))
      await client.send(maps, write('POST', map('one', { labels: { x: '1' } })))
      await client.send(maps, write('POST', map('two', { labels: { x: '2' } })))
      await client.send(maps, write('POST', map('three')))
    }
    await Promise.all([seed(real), seed(ours)])
    const told = async (client: Client, query: string, headers: Record<string, string>) => {
      const { status, body } = await client.send(`${maps}?watch=1&timeoutSeconds=1${query}`, {
        headers,
      })
      const lines = body
        .toString()
        .split('\n')
        .filter((line) => line !== '')
      // Bookmarks on the way come when the server's clock says so; the one that ends the initial
      // events is promised.
      const told = lines.filter(
        (line) =>
          !line.startsWith('{"type":"BOOKMARK"') || line.includes(initialEventsEndAnnotation),
      )
      return { status, events: told.map((line) => masking(JSON.parse(line) as Json)) }
    }
    await Promise.all(
      watches.map(async ([query, headers = {}]) => {
        const [found, expected] = await Promise.all([
          told(ours, query, headers),
          told(real, query, headers),
        ])
        t.strictSame(aged(found), aged(expected), `watch${query} ${headers['Accept'] ?? ''}`)
      }),
    )
  },
)

/** How old an object is differs by a second. */
const aged = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replace(/"[0-9]+s"/g, '"age"'))

void t.test(
  'the sandbox answers each request as a kube-apiserver does',
  { skip, timeout: 110_000 },
  async (t) => {
    const { real, ours } = await both(t)
    for (const [path, request = { headers: { Accept: 'application/json' } }] of requests) {
      const [expected, found] = [await real.send(path, request), await ours.send(path, request)]
      t.strictSame(shown(found), shown(expected), `${request.method ?? 'GET'} ${path}`)
    }
  },
)
