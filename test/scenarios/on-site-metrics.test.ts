import t from 'tap'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../src/api/kube/json-at.ts'
import { objectOf } from '../kit/client.ts'
import { nodeName } from '../kit/cloud.ts'
import type { KubeletApiOptions } from '../kit/kubelet-api.ts'
import { asRoot, discoveryTypes, startSite } from '../kit/site.ts'

const skip = process.getuid?.() === 0 ? false : 'the hub trusts a kubelet of root only'

const metrics = '/apis/metrics.k8s.io/v1beta1'
const podsOfDefault = `${metrics}/namespaces/default/pods`
const time = '2026-01-01T00:00:00Z'
const earlier = '2025-12-31T23:59:50Z'

const used = (usageNanoCores?: number, workingSetBytes?: number, at = time): JsonObject => ({
  cpu: { time: at, ...(usageNanoCores !== undefined && { usageNanoCores }) },
  memory: { time: at, ...(workingSetBytes !== undefined && { workingSetBytes }) },
})

const ofPod = (name: string, containers: readonly JsonObject[]): JsonObject => ({
  podRef: { name, namespace: 'default', uid: 'of the kubelet' },
  containers,
})

/** As the kubelet answers, with what it does not know yet left out. */
const summary = {
  node: { nodeName, ...used(2_000_000_000, 4096) },
  pods: [
    ofPod('a', [{ name: 'main', ...used(1, 1024) }]),
    ofPod('two', [
      { name: 'main', ...used(5, 10) },
      { name: 'side', ...used(7, 20, earlier) },
    ]),
    ofPod('unknown', [{ name: 'main', ...used(1, 1) }]),
  ],
}

const serving = (answered: Json): Partial<KubeletApiOptions> => ({
  answer: (_request, response) => response.end(JSON.stringify(answered)),
})

void t.test('without the cloud the usage of pods comes from their kubelet', { skip }, async (t) => {
  const site = await startSite(t, serving(summary))
  const kubectl = asRoot(site)
  const listed = await kubectl.get(podsOfDefault)
  t.equal(listed.status, 200)
  t.match(listed.headers['warning'], /answered by the kubelet of edge-1: the cloud cannot be/)
  const labelled = (name: string): JsonObject => ({
    metadata: { name, namespace: 'default', labels: { app: name } },
  })
  t.strictSame(objectOf(listed), {
    kind: 'PodMetricsList',
    apiVersion: 'metrics.k8s.io/v1beta1',
    metadata: {},
    items: [
      {
        ...labelled('a'),
        timestamp: time,
        containers: [{ name: 'main', usage: { cpu: '1n', memory: '1024' } }],
      },
      {
        ...labelled('two'),
        timestamp: earlier,
        containers: [
          { name: 'main', usage: { cpu: '5n', memory: '10' } },
          { name: 'side', usage: { cpu: '7n', memory: '20' } },
        ],
      },
    ],
  })
  t.strictSame(site.kubelet.requests, ['GET /stats/summary?only_cpu_and_memory=true'])
  const names = async (path: string): Promise<string[]> =>
    listAt(objectOf(await kubectl.get(path)), 'items').map((each) =>
      textAt(each, 'metadata', 'name'),
    )
  t.strictSame(await names(`${metrics}/pods?labelSelector=app%3Dtwo`), ['two'])
  t.strictSame(await names(`${metrics}/namespaces/other/pods`), [], 'the kubelet has read all')
  const one = objectOf(await kubectl.get(`${podsOfDefault}/a`))
  t.strictSame([one['kind'], valueAt(one, 'timestamp')], ['PodMetrics', time])
})

void t.test('the usage of the node comes from its kubelet', { skip }, async (t) => {
  const site = await startSite(t, serving(summary))
  const kubectl = asRoot(site)
  const { items } = objectOf(await kubectl.get(`${metrics}/nodes`)) as { items: readonly Json[] }
  t.match(items, [
    {
      metadata: { name: nodeName },
      timestamp: time,
      usage: { cpu: '2000000000n', memory: '4096' },
    },
  ])
  t.equal(items.length, 1)
  const other = await kubectl.get(`${metrics}/nodes/edge-2`)
  t.match([other.status, other.body.toString()], [503, /usage of node edge-2 is not known/])
})

void t.test('usage unknown to the kubelet is not reported', { skip }, async (t) => {
  const site = await startSite(
    t,
    serving({
      node: used(undefined, 4096),
      pods: [
        ofPod('a', [{ name: 'main', ...used(1) }]),
        ofPod('two', [{ name: 'main', ...used(5, 10) }, { name: 'side' }]),
      ],
    }),
  )
  const kubectl = asRoot(site)
  for (const path of [`${metrics}/nodes`, podsOfDefault]) {
    t.strictSame(listAt(objectOf(await kubectl.get(path)), 'items'), [], path)
  }
  for (const path of [`${metrics}/nodes/${nodeName}`, `${podsOfDefault}/two`]) {
    const { status, body } = await kubectl.get(path)
    t.match([status, body.toString()], [503, /does not know the usage of \S+ yet/], path)
  }
  const absent = await kubectl.get(`${podsOfDefault}/none`)
  t.match([absent.status, absent.body.toString()], [503, /pod none is not known to run/])
})

void t.test('an answer that is no summary is refused', { skip }, async (t) => {
  const broken = asRoot(
    await startSite(t, { answer: (_request, response) => response.end('{"node":') }),
  )
  const unread = await broken.get(podsOfDefault)
  t.match([unread.status, unread.body.toString()], [503, /summary of the kubelet cannot be read/])
  const endless = asRoot(
    await startSite(t, {
      answer: (_request, response) => {
        const more = (): void => {
          while (response.write(' '.repeat(1024 * 1024)));
          response.once('drain', more)
        }
        more()
      },
    }),
  )
  const long = await endless.get(podsOfDefault)
  t.match([long.status, long.body.toString()], [503, /longer than 8388608 bytes/])
})

void t.test('usage is only for holders of the kubelet’s certificate', { skip }, async (t) => {
  const site = await startSite(t, serving(summary))
  const bySocket = await site.hub.as('kubectl').get(podsOfDefault)
  t.match([bySocket.status, bySocket.body.toString()], [403, /the kubelet's certificate/])
  t.equal((await site.hub.as('kubectl', { token: 'stolen' }).get(podsOfDefault)).status, 401)
  t.strictSame(site.kubelet.requests, [])
})

void t.test('kubectl finds on site that there is usage, components do not', { skip }, async (t) => {
  const site = await startSite(t)
  const kubectl = asRoot(site)
  for (const accept of discoveryTypes) {
    const shown = objectOf(await kubectl.withOptions({ accept }).get('/apis'))
    const told = objectOf(await site.hub.as('kubelet', { accept }).get('/apis'))
    const member = told['kind'] === 'APIGroupList' ? 'groups' : 'items'
    const [added, ...others] = listAt(shown, member).toReversed()
    t.strictSame(others.toReversed(), listAt(told, member), 'all else is as recorded')
    t.match(JSON.stringify(added), /"metrics\.k8s\.io".*"v1beta1"/)
  }
  const resources = objectOf(await kubectl.get(metrics))
  t.strictSame(
    listAt(resources, 'resources').map((each) => textAt(each, 'kind')),
    ['NodeMetrics', 'PodMetrics'],
  )
  t.equal((await site.hub.as('kubelet').get(metrics)).status, 503)
})
