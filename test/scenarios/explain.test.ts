import t from 'tap'
import { service, services } from '../kit/cloud.ts'
import { goOffline, onlineNode, onlineNodeWith, type TestHub } from '../kit/hub.ts'
import { objectOf, tableAccept, type RequestOptions } from '../kit/client.ts'
import { requestAs } from '../kit/other-user.ts'

const isRoot = process.platform === 'linux' && process.getuid?.() === 0
const skip = isRoot ? false : 'only root gets the reason'

const header = 'x-nodehub-explain'

async function why(
  hub: TestHub,
  path: string,
  component = 'kubelet',
  options: RequestOptions = {},
): Promise<string> {
  const headers = { 'X-Nodehub-Explain': '1', ...options.headers }
  const answer = await hub.as(component).send(path, { ...options, headers })
  return String(answer.headers[header])
}

const aPod = '/api/v1/namespaces/default/pods/a'
const allPods = '/api/v1/pods?fieldSelector=spec.nodeName%3Dedge-1'

void t.test(
  'root gets the source of an answer and its reason, through an outage',
  { skip },
  async (t) => {
    const { cloud, hub } = await onlineNode(t, 'a')
    t.equal(
      await why(hub, aPod),
      `source=cloud; reason="only an API server can answer it consistently"; upstream=${cloud.url}`,
    )
    t.match(
      await why(hub, `${allPods}&resourceVersion=0`),
      /^source=cloud; reason="an API server is/,
    )
    t.match(await why(hub, '/api/v1/namespaces/default/pods/none'), /^source=cloud; /)

    await goOffline(cloud, hub)
    t.match(await why(hub, aPod), /^source=cache; reason="no API server is healthy"; age=\d+$/)
    t.match(
      await why(hub, aPod, 'kubectl', { headers: { Accept: tableAccept } }),
      /^source=cache; reason="no API server is healthy: components of this node have read it"; age=/,
    )
    t.match(
      await why(hub, `${allPods}&resourceVersion=999999`),
      /^source=hub; reason="Timeout: Too large resource version/,
    )
    t.match(
      await why(hub, '/api/v1/namespaces/default/secrets/none'),
      /^source=hub; reason="the cloud cannot be reached, and the answer is not in the cache"$/,
    )
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'a.1', namespace: 'default' },
      involvedObject: {},
    }
    t.match(
      await why(hub, '/api/v1/namespaces/default/events', 'kubelet', {
        method: 'POST',
        body: event,
      }),
      /^source=cache; reason="no API server is healthy: the write is accepted at the node/,
    )
  },
)

void t.test('root gets the filters that act on an answer', { skip }, async (t) => {
  const { cloud, hub } = await onlineNode(t)
  cloud.sandbox.create(services, service('kubernetes', '10.96.0.1'))
  const hidden = 'x-tunnel-server-internal-svc'
  cloud.sandbox.create(services, service(hidden, '10.96.0.2', 'kube-system'))
  const path = '/api/v1/services?resourceVersion=0'
  t.match(await why(hub, path, 'kube-proxy'), /^source=cloud; .*; filters=discardcloudservice$/)
  t.match(
    await why(hub, `/api/v1/namespaces/kube-system/services/${hidden}`, 'kube-proxy'),
    'source=hub; reason="withheld by one of the filters discardcloudservice"',
  )
})

void t.test(
  'other callers get no explanation, and no API server gets the header',
  { skip },
  async (t) => {
    const { cloud, hub } = await onlineNodeWith(t, { flags: ['--anonymous-loopback=node'] }, 'a')
    const [other] = await requestAs(65_534, [
      { url: `${hub.url}${aPod}`, headers: { 'X-Nodehub-Explain': '1', 'User-Agent': 'kubelet' } },
    ])
    t.equal(other?.status, 200)
    t.equal(other?.headers[header], undefined)
    const plain = await hub.as('kubelet').get(aPod)
    t.equal(plain.headers[header], undefined)
    const wrong = await hub.as('kubelet').send(aPod, { headers: { 'X-Nodehub-Explain': 'yes' } })
    t.equal(wrong.headers[header], undefined)
    t.match(await why(hub, aPod), 'source=cloud')
    t.notOk(
      cloud.sandbox.requests.some(({ headers }) => header in headers),
      'it goes no further',
    )

    await goOffline(cloud, hub)
    const recorded = await hub.as('kubelet').get(aPod)
    t.match(objectOf(recorded), { metadata: { name: 'a' } })
    t.equal(recorded.headers[header], undefined, 'it is not recorded')
  },
)

void t.test('a refusal is explained', { skip }, async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  await hub.as('kubelet').list(allPods)
  await goOffline(cloud, hub)
  const forged = hub.as('agent', { token: 'forged' })
  const unproven = await forged.send(aPod, { headers: { 'X-Nodehub-Explain': '1' } })
  t.equal(unproven.status, 401)
  t.match(unproven.headers[header], 'source=hub; reason="no API server has accepted this token')
  t.match(
    await why(hub, `${aPod}/log`, 'kubectl'),
    'source=hub; reason="the cloud cannot be reached, and the hub relays to the kubelet only for callers with',
  )
  t.match(
    await why(hub, `${allPods}&limit=1&continue=abc`),
    /^source=hub; reason="The provided continue/,
  )
})
