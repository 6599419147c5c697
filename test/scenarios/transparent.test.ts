import t from 'tap'
import { once } from 'node:events'
import { howItEnds, lastingHeaders, type Answer, type RequestOptions } from '../kit/client.ts'
import { nodeName, pod } from '../kit/cloud.ts'
import { onlineNode, startCloud, startTestHub } from '../kit/hub.ts'

const pods = '/api/v1/namespaces/default/pods'

const sameAnswer = (answer: Answer) => ({
  status: answer.status,
  headers: lastingHeaders(answer),
  body: answer.body.toString('latin1'),
  trailers: answer.trailers,
})

const posting = (body: object): RequestOptions => ({
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
})

/** Writes, in an order in which each has something to act on; test/differential has all kinds. */
const writes: readonly (readonly [method: string, path: string, asked?: RequestOptions])[] = [
  ['POST', pods, posting(pod('new'))],
  ['POST', pods, posting(pod('new'))],
  [
    'PATCH',
    `/api/v1/nodes/${nodeName}/status`,
    {
      headers: { 'Content-Type': 'application/strategic-merge-patch+json' },
      body: JSON.stringify({ status: { conditions: [{ type: 'Ready', status: 'True' }] } }),
    },
  ],
  [
    'POST',
    '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
    posting({
      metadata: { name: nodeName, namespace: 'kube-node-lease' },
      spec: { holderIdentity: nodeName, leaseDurationSeconds: 40 },
    }),
  ],
  ['POST', `${pods}/new/eviction`, posting({ metadata: { name: 'new', namespace: 'default' } })],
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
  for (const each of [cloud, twin]) each.addPods('a', 'b', 'c')
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
  const { cloud, hub } = await onlineNode(t, 'a')
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
