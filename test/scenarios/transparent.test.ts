import t from 'tap'
import { once } from 'node:events'
import { howItEnds, lastingHeaders, type Answer, type RequestOptions } from '../kit/client.ts'
import { configMaps, nodeName, pod } from '../kit/cloud.ts'
import { onlineNode, startCloud, startTestHub, type CloudServer } from '../kit/hub.ts'

function seed(cloud: CloudServer): void {
  cloud.addPods('a', 'b', 'c')
  cloud.sandbox.create(configMaps, {
    metadata: { name: 'settings', namespace: 'default' },
    data: { a: '1' },
  })
}

const pods = '/api/v1/namespaces/default/pods'
const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'

const sameAnswer = (answer: Answer) => ({
  status: answer.status,
  headers: lastingHeaders(answer),
  body: answer.body.toString('latin1'),
  trailers: answer.trailers,
})

const json = { 'Content-Type': 'application/json' }
const patch = (type: string): Record<string, string> => ({
  'Content-Type': `application/${type}-patch+json`,
})

/** Writes, in an order in which each has something to act on. */
const writes: readonly (readonly [method: string, path: string, asked?: RequestOptions])[] = [
  ['POST', pods, { headers: json, body: JSON.stringify(pod('new')) }],
  ['POST', pods, { headers: json, body: JSON.stringify(pod('new')) }],
  ['POST', `${pods}?dryRun=All`, { headers: json, body: JSON.stringify(pod('dry')) }],
  ['POST', pods, { headers: json, body: '{' }],
  ['POST', pods, { headers: { 'Content-Type': 'text/plain' }, body: 'x' }],
  ['POST', pods, { headers: json, body: JSON.stringify({ metadata: { name: 'No Name' } }) }],
  [
    'PATCH',
    `${pods}/new`,
    { headers: patch('merge'), body: JSON.stringify({ metadata: { labels: { a: 'b' } } }) },
  ],
  [
    'PATCH',
    `${pods}/new`,
    {
      headers: patch('json'),
      body: JSON.stringify([{ op: 'test', path: '/metadata/name', value: 'other' }]),
    },
  ],
  [
    'PATCH',
    `${pods}/new/status`,
    {
      headers: patch('strategic-merge'),
      body: JSON.stringify({ status: { conditions: [{ type: 'Ready', status: 'True' }] } }),
    },
  ],
  [
    'PATCH',
    `/api/v1/nodes/${nodeName}/status`,
    {
      headers: patch('strategic-merge'),
      body: JSON.stringify({ status: { conditions: [{ type: 'Ready', status: 'True' }] } }),
    },
  ],
  [
    'PUT',
    '/api/v1/namespaces/default/configmaps/settings',
    {
      headers: json,
      body: JSON.stringify({
        metadata: { name: 'settings', namespace: 'default', resourceVersion: '1' },
      }),
    },
  ],
  [
    'POST',
    lease,
    {
      headers: json,
      body: JSON.stringify({
        metadata: { name: nodeName, namespace: 'kube-node-lease' },
        spec: { holderIdentity: nodeName, leaseDurationSeconds: 40 },
      }),
    },
  ],
  [
    'POST',
    '/api/v1/namespaces/default/events',
    {
      headers: json,
      body: JSON.stringify({
        metadata: { name: 'e.1', namespace: 'default' },
        involvedObject: { kind: 'Pod', namespace: 'default', name: 'a' },
        reason: 'Started',
        type: 'Normal',
      }),
    },
  ],
  [
    'POST',
    `${pods}/new/eviction`,
    { headers: json, body: JSON.stringify({ metadata: { name: 'new', namespace: 'default' } }) },
  ],
  ['DELETE', `${pods}/a?gracePeriodSeconds=0`, { headers: json, body: '{}' }],
  ['DELETE', `${pods}/nowhere`],
  ['DELETE', `${pods}?labelSelector=app%3Db`],
]

/** What two clusters never share, though nothing else sets them apart. */
const masked = ({ status, headers, body, trailers }: ReturnType<typeof sameAnswer>) => ({
  status,
  headers: headers.filter((header) => !/^content-length/i.test(header)),
  body: body
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UID')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME'),
  trailers,
})

void t.test('a write is made once, and answered as without the hub', async (t) => {
  const [cloud, twin] = [await startCloud(t), await startCloud(t)]
  seed(cloud)
  seed(twin)
  const hub = await startTestHub(t, { upstreams: [cloud] })
  for (const [method, path, asked] of writes) {
    const direct = await twin.as('kubelet').send(path, { ...asked, method })
    const through = await hub.as('kubelet').send(path, { ...asked, method })
    const what = `${method} ${path}`
    t.strictSame(masked(sameAnswer(through)), masked(sameAnswer(direct)), what)
  }
  t.equal(cloud.sandbox.version, twin.sandbox.version, 'each write was made once')
})

void t.test('a log is followed line by line, until the client leaves', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  seed(cloud)
  const asked = cloud.sandbox.nextRequest(({ path }) => path.endsWith('/log'))
  const log = await hub.as('kubectl').open(`${pods}/a/log?follow=true`)
  for (const line of ['one\n', 'two\n']) {
    cloud.sandbox.log('default', 'a', line)
    const [chunk] = (await once(log, 'data')) as [Buffer]
    t.equal(chunk.toString(), line)
  }
  const { over } = await asked
  log.destroy()
  t.equal(await howItEnds(log), 'broken')
  if (!over.aborted) await once(over, 'abort')
  t.pass('the request to the cloud has ended')
})
