import t from 'tap'
import type { Encoding } from '../../src/api/kube/media-type.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import type { GVR } from '../../src/api/kube/gvk.ts'
import { at, objectOf, type Client, type Watching, withInitialEvents } from '../kit/client.ts'
import {
  configMaps,
  nodeName,
  pod,
  pods,
  service,
  services,
  type CloudServer,
} from '../kit/cloud.ts'
import { startOnlineHub, goOffline, startCloud, type TestHub } from '../kit/hub.ts'
import { definePools, nodePool, poolResource, putIntoPool } from '../kit/node-pools.ts'
import { reachable, reachableHost } from '../kit/reachable.ts'
import { until } from '../kit/until.ts'
import type { Teardown } from '../kit/wire/wire.ts'

const slices: GVR = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' }
const endpoints: GVR = { group: '', version: 'v1', resource: 'endpoints' }
const pools = poolResource('v1beta2')

const everywhere = ['edge-1', 'edge-2', 'edge-3']

/** A service of these that says so in its annotations. */
const annotated = (name: string, type: string, annotations: JsonObject): JsonObject => {
  const made = service(name, '10.96.0.9') as { spec: JsonObject }
  return {
    metadata: { name, namespace: 'default', annotations },
    spec: { ...made.spec, type },
  }
}

const slice = (service: string, rest: JsonObject = {}): JsonObject => ({
  metadata: {
    name: service,
    namespace: 'default',
    labels: { 'kubernetes.io/service-name': service },
  },
  addressType: 'IPv4',
  ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
  endpoints: everywhere.map((node, index) => ({
    addresses: [`10.244.${index}.2`],
    conditions: { ready: true },
    nodeName: node,
  })),
  ...rest,
})

const kubeProxyConfig = (line: string): string =>
  `clientConnection:\n  ${line}: /var/lib/kube-proxy/kubeconfig.conf\nmode: ""\n`

async function cloudWithAll(t: Teardown): Promise<CloudServer> {
  const cloud = await startCloud(t)
  const { sandbox } = cloud
  definePools(cloud, 'v1beta2')
  sandbox.create(pools, nodePool('hangzhou', ['edge-1', 'edge-3']))
  putIntoPool(cloud, 'hangzhou')
  sandbox.create(services, service('kubernetes', '10.96.0.1'))
  sandbox.create(
    services,
    annotated('cloud', 'LoadBalancer', { 'svc.openyurt.io/discard': 'true' }),
  )
  const elsewhere = { 'nodeport.openyurt.io/listen': 'beijing' }
  sandbox.create(services, annotated('elsewhere', 'NodePort', elsewhere))
  const near = { 'openyurt.io/topologyKeys': 'openyurt.io/nodepool' }
  sandbox.create(services, annotated('near', 'ClusterIP', near))
  sandbox.create(slices, slice('near'))
  sandbox.create(slices, slice('kubernetes'))
  sandbox.create(endpoints, {
    metadata: { name: 'near', namespace: 'default' },
    subsets: [
      {
        addresses: everywhere.map((node, index) => ({ ip: `10.244.${index}.2`, nodeName: node })),
        ports: [{ port: 80, protocol: 'TCP' }],
      },
    ],
  })
  sandbox.create(configMaps, {
    metadata: { name: 'kube-proxy', namespace: 'kube-system' },
    data: { 'config.conf': kubeProxyConfig('kubeconfig') },
  })
  const env = [{ name: 'KUBERNETES_SERVICE_HOST', value: '10.96.0.1' }]
  sandbox.create(
    pods,
    pod('web', { spec: { nodeName, containers: [{ name: 'a', image: 'a', env }] } }),
  )
  return cloud
}

async function started(t: Teardown, cloud: CloudServer): Promise<TestHub> {
  const { flags, config } = await reachable(t)
  const hub = await startOnlineHub(t, { upstreams: [cloud], flags, config })
  await until('the ClusterIP of default/kubernetes to be known', async () => {
    const { body } = await hub.ops.get('/readyz?verbose')
    return !String(body).includes('forwardkubesvctraffic does nothing')
  })
  return hub
}

/** What each filter does to one object, and what of it is looked at. */
interface Story {
  readonly filter: string
  readonly component: string
  readonly collection: string
  readonly object: string
  readonly of: (object: JsonObject) => unknown
  /** `undefined`: it is withheld. */
  readonly shown: unknown
  readonly original: unknown
}

const nodesOf = (list: Json | undefined): unknown[] =>
  ((list ?? []) as readonly JsonObject[]).map(({ nodeName: node }) => node)

const addressesOf = (object: JsonObject): unknown =>
  ((object['endpoints'] ?? []) as readonly JsonObject[]).flatMap(({ addresses }) => addresses)

const inDefault = (resource: string): string => `/api/v1/namespaces/default/${resource}`
const slicesInDefault = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'

const stories: readonly Story[] = [
  {
    filter: 'discardcloudservice',
    component: 'kube-proxy',
    collection: inDefault('services'),
    object: 'cloud',
    of: (object) => at(object, 'spec', 'type'),
    shown: undefined,
    original: 'LoadBalancer',
  },
  {
    filter: 'nodeportisolation',
    component: 'kube-proxy',
    collection: inDefault('services'),
    object: 'elsewhere',
    of: (object) => at(object, 'spec', 'type'),
    shown: undefined,
    original: 'NodePort',
  },
  ...['kube-proxy', 'coredns', 'nginx-ingress-controller'].map((component) => ({
    filter: `servicetopology for ${component}`,
    component,
    collection: slicesInDefault,
    object: 'near',
    of: (object: JsonObject) => nodesOf(at(object, 'endpoints') as Json | undefined),
    shown: ['edge-1', 'edge-3'],
    original: everywhere,
  })),
  {
    filter: 'servicetopology of Endpoints',
    component: 'kube-proxy',
    collection: inDefault('endpoints'),
    object: 'near',
    of: (object) => nodesOf(at(object, 'subsets', 0, 'addresses') as Json | undefined),
    shown: ['edge-1', 'edge-3'],
    original: everywhere,
  },
  {
    filter: 'forwardkubesvctraffic',
    component: 'kube-proxy',
    collection: slicesInDefault,
    object: 'kubernetes',
    of: addressesOf,
    shown: [reachableHost],
    original: ['10.244.0.2', '10.244.1.2', '10.244.2.2'],
  },
  {
    filter: 'masterservice',
    component: 'kubelet',
    collection: inDefault('services'),
    object: 'kubernetes',
    of: (object) => at(object, 'spec', 'clusterIP'),
    shown: reachableHost,
    original: '10.96.0.1',
  },
  {
    filter: 'inclusterconfig',
    component: 'kubelet',
    collection: '/api/v1/namespaces/kube-system/configmaps',
    object: 'kube-proxy',
    of: (object) => at(object, 'data', 'config.conf'),
    shown: kubeProxyConfig('#kubeconfig'),
    original: kubeProxyConfig('kubeconfig'),
  },
  {
    filter: 'serviceenvupdater',
    component: 'kubelet',
    collection: inDefault('pods'),
    object: 'web',
    of: (object) => at(object, 'spec', 'containers', 0, 'env', 0, 'value'),
    shown: reachableHost,
    original: '10.96.0.1',
  },
]

/**
 * What a client is shown of an object by a get, in a list and in a watch that begins with what
 * there is.
 */
async function looks(client: Client, { collection, object, of }: Story): Promise<unknown[]> {
  const isMeant = (each: JsonObject): boolean => at(each, 'metadata', 'name') === object
  const got = await client.get(`${collection}/${object}`)
  const list = objectOf(await client.get(collection))
  const found = (list['items'] as readonly JsonObject[]).find(isMeant)
  const watch = await client.watch(collection, withInitialEvents)
  const seen = await untilBookmark(watch)
  watch.hangUp()
  const watched = seen.find(isMeant)
  return [
    got.status === 404 ? undefined : of(objectOf(got)),
    found && of(found),
    watched && of(watched),
  ]
}

async function untilBookmark(watch: Watching): Promise<JsonObject[]> {
  const seen: JsonObject[] = []
  for (;;) {
    const [event] = await watch.take(1)
    if (!event || event.type === 'BOOKMARK') return seen
    seen.push(event.object)
  }
}

const encodings: readonly Encoding[] = ['json', 'protobuf']
const thrice = (value: unknown): unknown[] => [value, value, value]

for (const encoding of encodings) {
  void t.test(
    `the same is shown by get, list and watch, online and offline: ${encoding}`,
    async (t) => {
      const cloud = await cloudWithAll(t)
      const hub = await started(t, cloud)
      const online = new Map<Story, unknown[]>()
      for (const story of stories) {
        const client = hub.as(story.component, { encoding })
        t.strictSame(await looks(client, story), thrice(story.shown), story.filter)
        const other = hub.as('kubectl', { encoding })
        t.strictSame(await looks(other, story), thrice(story.original), `${story.filter}: others`)
        online.set(story, thrice(story.shown))
      }
      await goOffline(cloud, hub)
      for (const story of stories) {
        const client = hub.as(story.component, { encoding })
        t.strictSame(await looks(client, story), online.get(story), `${story.filter}, offline`)
      }
    },
  )

  void t.test(`the reply to a write shows what a read would: ${encoding}`, async (t) => {
    const cloud = await cloudWithAll(t)
    const hub = await started(t, cloud)
    for (const story of stories) {
      const client = hub.as(story.component, { encoding })
      // What a filter has to know is learnt when its component first reads.
      await client.get(story.collection)
      const answer = await client.send(`${story.collection}/${story.object}`, {
        method: 'PATCH',
        headers: { 'Content-Type': 'application/merge-patch+json' },
        body: JSON.stringify({ metadata: { labels: { patched: 'yes' } } }),
      })
      t.equal(answer.status, 200, story.filter)
      const patched = objectOf(answer)
      t.equal(at(patched, 'metadata', 'labels', 'patched'), 'yes')
      // It has been done, whether its object is to be seen or not.
      t.strictSame(story.of(patched), story.shown ?? story.original, story.filter)
    }
  })
}
