import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import type { ApiClient, KubeObject } from '../kit/cluster/api-client.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { type HubProcess, startHubProcess } from '../kit/cluster/hub-process.ts'
import { until } from '../kit/until.ts'
import {
  administrator,
  type ControlPlane,
  noControlPlane,
  startControlPlane,
} from '../kit/control-plane.ts'
import { poolDefinition } from './host-network-pool.ts'
import { findKubectls } from './kubectl/find.ts'
import { compileProgram } from './programs.ts'
import { Reflectors } from './reflectors.ts'

t.setTimeout(600_000) // the first time client-go is compiled

const go = findBinaries(['go'])
const skip = noControlPlane() ?? ('missing' in go ? go.missing : false)

const nodeName = 'edge-1'
const host = '127.0.0.1'

/** What a component of 1.36 asks for, and how it calls itself. */
const components = {
  'kube-proxy': {
    userAgent: 'kube-proxy/v1.36.2 (linux/amd64) kubernetes/6a1b2c3',
    follow: ['services', 'endpointslices', 'endpoints'],
    labels: '!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name',
  },
  kubelet: {
    userAgent: 'kubelet/v1.36.2 (linux/amd64) kubernetes/6a1b2c3',
    follow: ['services', `pods?spec.nodeName=${nodeName}`, 'configmaps'],
  },
} as const

type Component = keyof typeof components

const ways = (['protobuf', 'json'] as const).flatMap((encoding) =>
  [true, false].map((watchList) => ({ encoding, watchList })),
)

void t.test(
  'client-go reads filtered answers as kube-proxy and kubelet, and unchanged ones as others',
  { skip, timeout: 600_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    const compiled = await compileProgram(plane.workspace, 'reflector')
    // The plan of a skipped test.
    if ('missing' in compiled) return t.plan(0, compiled.missing)
    await putObjects(plane.admin)
    const hub = await startHub(plane)
    const follow = (
      component: Component,
      server: string,
      way: (typeof ways)[number],
    ): Reflectors => {
      const reflectors = new Reflectors(plane.workspace, {
        program: compiled.program,
        kubeconfig: plane.kubeconfig(administrator, server),
        ...way,
        ...components[component],
      })
      t.teardown(() => reflectors.stop())
      return reflectors
    }
    for (const component of Object.keys(components) as Component[]) {
      for (const way of ways) {
        const how = `${component}, ${way.encoding}, ${way.watchList ? 'WatchList' : 'list and watch'}`
        const direct = follow(component, plane.url, way)
        const through = follow(component, hub.url, way)
        const before = await settled(direct)
        const after = await settled(through)
        t.strictSame(after, expected(component, before, hub), how)
      }
    }
    // What changes while it is watched is filtered alike.
    const watching = follow('kube-proxy', hub.url, { encoding: 'protobuf', watchList: true })
    await settled(watching)
    await must(
      plane.admin.send(
        'PATCH',
        slicePath('web'),
        '{"metadata":{"labels":{"changed":"yes"}}}',
        'application/merge-patch+json',
      ),
    )
    await until('the change to arrive', async () => {
      const slice = (await held(watching))['endpointslices default/web'] as JsonObject | undefined
      return JSON.stringify(slice?.['metadata'] ?? null).includes('"changed":"yes"')
    })
    const changed = (await held(watching))['endpointslices default/web'] as JsonObject
    t.strictSame(nodesOf(changed['endpoints']), ['edge-1', 'edge-3'])
    const [kubectl] = findKubectls()
    await t.test(
      'kubectl reads the same once filters apply to it',
      { skip: kubectl === undefined && 'no kubectl on PATH' },
      async (t) => readByKubectl(t, plane, hub, kubectl?.path ?? ''),
    )
  },
)

/**
 * Filters act for kubectl where the cluster's ConfigMap says so: then what people read says what
 * components are shown.
 */
async function readByKubectl(t: Test, plane: ControlPlane, hub: HubProcess, kubectl: string) {
  const filters = ['masterservice', 'servicetopology', 'inclusterconfig', 'serviceenvupdater']
  await must(
    plane.admin.post('/api/v1/namespaces/kube-system/configmaps', {
      metadata: { name: 'yurt-hub-cfg' },
      data: Object.fromEntries(
        [...filters, 'discardcloudservice'].map((name) => [name, 'kubectl']),
      ),
    }),
  )
  const kubeconfig = plane.kubeconfig(administrator, hub.url)
  const cache = plane.workspace.file('kubectl-cache')
  const said = async (line: string): Promise<string> => {
    const args = [`--kubeconfig=${kubeconfig}`, `--cache-dir=${cache}`, ...line.split(' ')]
    const { stdout, stderr } = await promisify(execFile)(kubectl, args).catch(
      (error: { stdout: string; stderr: string }) => error,
    )
    return stdout + stderr
  }
  await until('filters to act for kubectl', async () =>
    (await said('get service kubernetes -o yaml')).includes(`clusterIP: ${host}`),
  )
  const port = new URL(hub.secureUrl).port
  t.match(await said('get service kubernetes -o yaml'), `port: ${port}`)
  t.match(await said('describe service kubernetes'), new RegExp(`IP: +${host}`))
  t.equal(await said('get endpointslice web -o jsonpath={.endpoints[*].nodeName}'), 'edge-1 edge-3')
  const described = await said('describe endpointslice web')
  t.match(described, '10.244.0.2')
  t.notMatch(described, '10.244.1.2')
  t.match(await said('describe configmap kube-proxy -n kube-system'), '#kubeconfig: /a')
  t.match(await said('describe pod web'), new RegExp(`KUBERNETES_SERVICE_HOST: +${host}`))
  t.match(await said('get service cloud -o yaml'), /not found/)
}

/**
 * As an operator would who wants pods to be led to the hub on a node whose pods share its loopback.
 */
function startHub(plane: ControlPlane): Promise<HubProcess> {
  const serving = plane.pki.server('hub-serving', { commonName: 'hub' }, [
    `IP:${host}`,
    // Of the service `kubernetes`: pods that dial it are led to the hub too.
    'IP:10.96.0.1',
  ])
  return startHubProcess(plane.workspace, {
    servers: [plane.url],
    kubeconfig: plane.kubeconfig(administrator),
    nodeName,
    flags: [
      `--hub-address=${host}`,
      '--host-network-node',
      '--plain-proxy',
      `--serving-cert=${serving.certificate}`,
      `--serving-key=${serving.key}`,
    ],
  })
}

const slicePath = (name: string): string =>
  `/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/${name}`

const everywhere = ['edge-1', 'edge-2', 'edge-3', undefined]

const env = [
  { name: 'KUBERNETES_SERVICE_HOST', value: '10.96.0.1' },
  { name: 'KUBERNETES_SERVICE_PORT', value: '443' },
  { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
]

async function putObjects(admin: ApiClient): Promise<void> {
  const inDefault = (resource: string): string => `/api/v1/namespaces/default/${resource}`
  const put = async (path: string, object: object): Promise<void> => {
    await must(admin.post(path, object))
  }
  await put('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', poolDefinition)
  await until('NodePools to be served', async () => {
    const { status } = await admin.get('/apis/apps.openyurt.io/v1beta2/nodepools')
    return status === 200
  })
  await put('/apis/apps.openyurt.io/v1beta2/nodepools', {
    apiVersion: 'apps.openyurt.io/v1beta2',
    kind: 'NodePool',
    metadata: { name: 'hangzhou' },
    spec: { type: 'Edge' },
    status: { nodes: ['edge-1', 'edge-3'] },
  })
  await put('/api/v1/nodes', {
    metadata: { name: nodeName, labels: { 'apps.openyurt.io/nodepool': 'hangzhou' } },
  })
  const service = (name: string, type: string, annotations: object, labels = {}): Promise<void> =>
    put(inDefault('services'), {
      metadata: { name, annotations, labels },
      spec: { type, ports: [{ name: 'http', port: 80 }], selector: { app: name } },
    })
  await service('web', 'ClusterIP', { 'openyurt.io/topologyKeys': 'openyurt.io/nodepool' })
  await service('plain', 'ClusterIP', {})
  await service('cloud', 'LoadBalancer', { 'svc.openyurt.io/discard': 'true' })
  await service('here', 'NodePort', { 'nodeport.openyurt.io/listen': 'hangzhou' })
  await service('elsewhere', 'NodePort', { 'nodeport.openyurt.io/listen': '-hangzhou,*' })
  await service('headless', 'ClusterIP', {}, { 'service.kubernetes.io/headless': '' })
  for (const name of ['web', 'plain']) {
    await put('/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
      metadata: { name, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 80 }],
      endpoints: everywhere.map((node, at) => ({
        addresses: [`10.244.${at}.2`],
        conditions: { ready: true },
        hints: { forZones: [{ name: 'a' }] },
        ...(node !== undefined && { nodeName: node }),
      })),
    })
  }
  // An API server on loopback does not write its own.
  await put('/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
    metadata: { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    ports: [{ name: 'https', port: 6443 }],
    endpoints: [{ addresses: ['192.0.2.1'], conditions: { ready: true } }],
  })
  await put(inDefault('endpoints'), {
    metadata: { name: 'web' },
    subsets: [
      {
        addresses: everywhere.map((node, at) => ({
          ip: `10.244.${at}.2`,
          ...(node !== undefined && { nodeName: node }),
        })),
        ports: [{ name: 'http', port: 80 }],
      },
    ],
  })
  await until('the namespace kube-system', async () => {
    return (await admin.get('/api/v1/namespaces/kube-system')).status === 200
  })
  await put('/api/v1/namespaces/kube-system/configmaps', {
    metadata: { name: 'kube-proxy' },
    data: { 'config.conf': 'clientConnection:\n  kubeconfig: /a\n', 'kubeconfig.conf': 'a: b\n' },
  })
  await put(inDefault('serviceaccounts'), { metadata: { name: 'default' } })
  await put(inDefault('pods'), {
    metadata: { name: 'web' },
    spec: {
      nodeName,
      automountServiceAccountToken: false,
      containers: [{ name: 'a', image: 'a', env }],
      initContainers: [{ name: 'b', image: 'a', env }],
    },
  })
}

type Objects = Readonly<Record<string, Json>>

/** What reflectors hold, by resource and name. */
async function held(reflectors: Reflectors): Promise<Objects> {
  const printed = await reflectors.print()
  return Object.fromEntries(
    Object.entries(printed).flatMap(([resource, objects]) =>
      objects.map((object) => [
        `${resource.split('?')[0]} ${nameOf(object)}`,
        object as unknown as Json,
      ]),
    ),
  )
}

const nameOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`

/** The same, once all have been listed. */
async function settled(reflectors: Reflectors): Promise<Objects> {
  await until('reflectors to have listed', async () => {
    const shown = Object.values(await reflectors.show())
    return shown.every(({ resourceVersion }) => resourceVersion !== '')
  })
  return held(reflectors)
}

/** What the filters are to make of what the API server says: by hand, on plain values. */
function expected(component: Component, objects: Objects, hub: HubProcess): Objects {
  const port = Number(new URL(hub.secureUrl).port)
  const seen = structuredClone(objects) as Record<string, JsonObject>
  const changes: Record<string, (object: JsonObject) => JsonObject> =
    component === 'kube-proxy'
      ? {
          'endpointslices default/web': near,
          'endpoints default/web': (object) => ({
            ...object,
            subsets: (object['subsets'] as JsonObject[]).map((subset) => ({
              ...subset,
              addresses: onNodes(subset['addresses']),
            })),
          }),
          'endpointslices default/kubernetes': (object) => ({
            ...object,
            endpoints: [{ addresses: [host], conditions: { ready: true } }],
            ports: withPort(object['ports'], port),
          }),
        }
      : {
          'services default/kubernetes': (object) => {
            const spec = object['spec'] as JsonObject
            const ports = withPort(spec['ports'], port)
            return { ...object, spec: { ...spec, clusterIP: host, clusterIPs: [host], ports } }
          },
          'configmaps kube-system/kube-proxy': (object) => ({
            ...object,
            data: {
              'config.conf': 'clientConnection:\n  #kubeconfig: /a\n',
              'kubeconfig.conf': 'a: b\n',
            },
          }),
          'pods default/web': (object) => {
            const spec = object['spec'] as JsonObject
            const [containers, initContainers] = [spec['containers'], spec['initContainers']].map(
              (all) =>
                (all as JsonObject[]).map((each) => ({ ...each, env: ledTo(each['env'], port) })),
            )
            return { ...object, spec: { ...spec, containers, initContainers } as JsonObject }
          },
        }
  for (const [name, change] of Object.entries(changes)) {
    const object = seen[name]
    if (!object) throw new Error(`the API server does not say ${name}`)
    seen[name] = change(object)
  }
  if (component === 'kube-proxy') {
    for (const name of ['cloud', 'elsewhere']) {
      if (!seen[`services default/${name}`]) throw new Error(`there is no service ${name}`)
      delete seen[`services default/${name}`]
    }
    if (!seen['services default/here']) throw new Error('there is no service here')
    if (seen['services default/headless']) throw new Error('the selector is not applied')
  }
  return seen
}

const near = (object: JsonObject): JsonObject => ({
  ...object,
  endpoints: onNodes(object['endpoints']),
})

const onNodes = (all: Json | undefined): JsonObject[] =>
  (all as JsonObject[]).filter(({ nodeName: node }) => node === 'edge-1' || node === 'edge-3')

const nodesOf = (all: Json | undefined): unknown[] =>
  (all as JsonObject[]).map(({ nodeName: node }) => node)

const withPort = (ports: Json | undefined, port: number): JsonObject[] =>
  (ports as JsonObject[]).map((each) => (each['name'] === 'https' ? { ...each, port } : each))

const ledTo = (variables: Json | undefined, port: number): JsonObject[] =>
  (variables as JsonObject[]).map((variable) => {
    if (variable['name'] === 'KUBERNETES_SERVICE_HOST') return { ...variable, value: host }
    if (variable['name'] === 'KUBERNETES_SERVICE_PORT') return { ...variable, value: String(port) }
    return variable
  })

async function must(asked: Promise<{ status: number; body: Buffer }>): Promise<void> {
  const { status, body } = await asked
  if (status >= 300) throw new Error(`${status}: ${body.toString().slice(0, 300)}`)
}
