import t, { type Test } from 'tap'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../src/api/kube/json-at.ts'
import { objectOf, tableAccept, warningOf, type Answer, type Client } from '../kit/client.ts'
import { podsOfNode } from '../kit/cloud.ts'
import { onlineNode, goOnline, goOffline, type CloudServer, type TestHub } from '../kit/hub.ts'

const skip = process.getuid?.() === 0 ? false : 'only root is shown the records of components'

const events = '/api/v1/namespaces/default/events'

const event = (name: string, of: string, rest: JsonObject = {}): JsonObject => ({
  kind: 'Event',
  apiVersion: 'v1',
  metadata: { name, namespace: 'default' },
  involvedObject: { kind: 'Pod', namespace: 'default', name: of, uid: `uid-of-${of}` },
  reason: 'BackOff',
  message: 'Back-off restarting failed container',
  source: { component: 'kubelet', host: 'edge-1' },
  firstTimestamp: '2026-01-01T00:00:00Z',
  lastTimestamp: '2026-01-01T00:00:00Z',
  count: 1,
  type: 'Warning',
  ...rest,
})

interface Site {
  readonly cloud: CloudServer
  readonly hub: TestHub
  readonly kubectl: Client
}

async function startOnline(t: Test): Promise<Site> {
  const { cloud, hub } = await onlineNode(t, 'a')
  await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
  return { cloud, hub, kubectl: hub.as('kubectl') }
}

async function startCut(t: Test): Promise<Site> {
  const { cloud, hub, kubectl } = await startOnline(t)
  t.equal((await kubectl.get(events)).status, 200, 'kubectl has read them before')
  await goOffline(cloud, hub)
  return { cloud, hub, kubectl }
}

const write = (client: Client, body: JsonObject, query = ''): Promise<Answer> =>
  client.send(`${events}${query}`, { method: 'POST', body })

const namesIn = (answer: Answer): string[] =>
  listAt(objectOf(answer), 'items').map((each) => textAt(each, 'metadata', 'name'))

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `a person is shown what the kubelet has written without the cloud: ${encoding}`,
    { skip },
    async (t) => {
      const { hub, kubectl } = await startCut(t)
      const kubelet = hub.as('kubelet', { encoding })
      for (const body of [event('b.1', 'b'), event('a.1', 'a'), event('a.1', 'a', { count: 2 })])
        t.equal((await write(kubelet, body)).status, 201)
      const all = await kubectl.get(events)
      t.strictSame(namesIn(all), ['a.1', 'b.1'])
      t.match(all.headers['warning'], /have read it; 2 written here, and not in the cluster/)
      const [first] = listAt(objectOf(all), 'items')
      t.equal(valueAt(first, 'count'), 2, 'a repetition takes the place of the first')
      // As `kubectl describe pod` asks.
      const ofPod = new URLSearchParams({
        fieldSelector: 'involvedObject.name=b,involvedObject.uid=uid-of-b',
        limit: '500',
      })
      t.strictSame(namesIn(await kubectl.get(`${events}?${ofPod}`)), ['b.1'])
      const table = await kubectl.withOptions({ accept: tableAccept }).get('/api/v1/events')
      t.match(
        listAt(objectOf(table), 'rows').map((row) => listAt(row, 'cells').slice(1, 4)),
        [
          ['Warning', 'BackOff', 'pod/a'],
          ['Warning', 'BackOff', 'pod/b'],
        ],
      )
      t.match(table.headers['warning'], /the cluster may have more; 2 written here/)
      const single = await kubectl.get(`${events}/b.1`)
      t.match(objectOf(single), { kind: 'Event', apiVersion: 'v1', metadata: { name: 'b.1' } })
      t.match(single.headers['warning'], /1 written here, and not in the cluster/)
    },
  )
}

void t.test('no component is shown an event that was written offline', { skip }, async (t) => {
  const { hub, kubectl } = await startCut(t)
  const kubelet = hub.as('kubelet')
  await write(kubelet, event('a.1', 'a'))
  t.equal((await kubectl.get(`${events}/a.1`)).status, 200)
  t.equal((await kubelet.get(`${events}/a.1`)).status, 404, 'by the list that kubectl has read')
  t.strictSame(namesIn(await kubelet.get(events)), [])
})

void t.test('online only the Events of the cloud are shown', { skip }, async (t) => {
  const { cloud, hub, kubectl } = await startCut(t)
  await write(hub.as('kubelet'), event('a.1', 'a'))
  await goOnline(cloud, hub)
  t.strictSame(namesIn(await kubectl.get(events)), [])
})

const patched = (client: Client, name: string, count: number): Promise<Answer> =>
  client.send(`${events}/${name}`, {
    method: 'PATCH',
    body: JSON.stringify({ count }),
    headers: { 'Content-Type': 'application/strategic-merge-patch+json' },
  })

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `a person is shown what the kubelet has sent before the cut: ${encoding}`,
    { skip },
    async (t) => {
      const { cloud, hub, kubectl } = await startOnline(t)
      const kubelet = hub.as('kubelet', { encoding })
      t.equal((await write(kubelet, event('a.1', 'a'))).status, 201)
      t.equal((await write(kubelet, event('b.1', 'b'))).status, 201)
      t.equal((await patched(kubelet, 'a.1', 7)).status, 200)
      t.equal((await write(kubelet, event('tried.1', 'a'), '?dryRun=All')).status, 201)
      const own = hub.as('pod', { token: await cloud.readerToken() })
      t.equal((await write(own, event('other.1', 'a'))).status, 201, 'of a service account')
      await goOffline(cloud, hub)

      const all = await kubectl.get(events)
      t.strictSame(namesIn(all), ['a.1', 'b.1'])
      t.equal(valueAt(listAt(objectOf(all), 'items')[0], 'count'), 7, 'the last answer counts')
      t.match(warningOf(all), /since \d.*have read it; the cluster may have more"$/)
      const ofPod = new URLSearchParams({ fieldSelector: 'involvedObject.name=b' })
      t.strictSame(namesIn(await kubectl.get(`${events}?${ofPod}`)), ['b.1'])
      const table = await kubectl.withOptions({ accept: tableAccept }).get('/api/v1/events')
      t.match(
        listAt(objectOf(table), 'rows').map((row) => listAt(row, 'cells').slice(1, 4)),
        [
          ['Warning', 'BackOff', 'pod/a'],
          ['Warning', 'BackOff', 'pod/b'],
        ],
      )
      const single = await kubectl.get(`${events}/a.1`)
      t.match(objectOf(single), { kind: 'Event', apiVersion: 'v1', count: 7 })
      t.notMatch(warningOf(single), /written here/)
      t.equal((await kubelet.get(`${events}/a.1`)).status, 503, 'no component is shown it')
      await hub.restart()
      await hub.offline()
      t.equal((await hub.as('kubectl').get(events)).status, 503, 'a restart forgets them')
    },
  )
}

void t.test(
  'Events that were sent and Events that were read form one list',
  { skip },
  async (t) => {
    const { cloud, hub, kubectl } = await startOnline(t)
    const kubelet = hub.as('kubelet')
    for (const name of ['repeated', 'seen'])
      t.equal((await write(kubelet, event(`${name}.1`, 'a'))).status, 201)
    t.equal((await kubectl.get(events)).status, 200)
    t.equal((await patched(kubelet, 'repeated.1', 2)).status, 200)
    t.equal((await write(kubelet, event('sent.1', 'a'))).status, 201)
    await goOffline(cloud, hub)
    t.equal((await write(kubelet, event('written.1', 'a'))).status, 201)

    const answer = await kubectl.get(events)
    t.strictSame(namesIn(answer), ['repeated.1', 'seen.1', 'sent.1', 'written.1'])
    t.match(warningOf(answer), /have read it; 1 written here, and not in the cluster"$/)
    t.match(objectOf(await kubectl.get(`${events}/repeated.1`)), { count: 2 })
  },
)
