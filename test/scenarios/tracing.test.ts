import t, { type Test } from 'tap'
import { podsOfNode, startCloud } from '../kit/cloud.ts'
import { startOnlineHub, goOffline, type TestHub } from '../kit/hub.ts'
import { until } from '../kit/until.ts'
import { otlpReceiver, type OtlpReceiver, type ReceivedSpan } from '../kit/otlp-receiver.ts'

const aPod = '/api/v1/namespaces/default/pods/a'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const callersSpan = 'b7ad6b7169203331'
const sampled = `00-${traceId}-${callersSpan}-01`
const unsampled = `00-${traceId}-${callersSpan}-00`
const continuing = (traceparent: string) => ({
  headers: { traceparent, tracestate: 'vendor=1' },
})

async function start(t: Test, flags: (receiver: OtlpReceiver) => readonly string[]) {
  const [cloud, receiver] = await Promise.all([startCloud(t), otlpReceiver(t)])
  cloud.addPods('a')
  const hub = await startOnlineHub(t, { upstreams: [cloud], flags: flags(receiver) })
  return { cloud, receiver, hub }
}

const everyRequest = ({ url }: OtlpReceiver): readonly string[] => [
  `--tracing-endpoint=${url}`,
  '--tracing-sampling-rate-per-million=1000000',
]

/** The fields of a trace, with which the API server received each request for a path. */
const contextAt = ({ sandbox }: Awaited<ReturnType<typeof startCloud>>, path: string) =>
  sandbox.requests
    .filter(({ url }) => url === path)
    .map(({ headers }) => [headers['traceparent'], headers['tracestate']])

const ofKind = (spans: readonly ReceivedSpan[], kind: ReceivedSpan['kind']) =>
  spans.filter((span) => span.kind === kind)

/** Resolves once so many spans count with this result, at least. */
const counted = (hub: TestHub, result: string, spans = 1): Promise<unknown> =>
  until(`${result} spans`, async () => {
    const sample = `nodehub_tracing_spans_total{result="${result}"}`
    return (await hub.metric(sample)) >= spans
  })

void t.test('a sampled trace goes on through the hub to the API server', async (t) => {
  const { cloud, receiver, hub } = await start(t, ({ url }) => [`--tracing-endpoint=${url}`])
  await hub.as('kubelet').send(aPod, continuing(sampled))
  const { id } = await hub.answered(({ path }) => path === aPod)
  await hub.stop()
  const [server] = ofKind(receiver.spans, 'server')
  const [client] = ofKind(receiver.spans, 'client')
  t.equal(receiver.spans.length, 2)
  const { host, hostname, port } = new URL(cloud.url)
  t.match(server, {
    traceId,
    parentSpanId: callersSpan,
    name: 'GET /api/v1/namespaces/{namespace}/pods/{name}',
    failed: false,
    attributes: {
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'http.route': '/api/v1/namespaces/{namespace}/pods/{name}',
      'url.path': aPod,
      'url.scheme': 'http',
      'server.address': '127.0.0.1',
      'nodehub.request.id': id,
      'nodehub.verb': 'get',
      'nodehub.resource': 'pods',
      'nodehub.component': 'kubelet',
      'nodehub.source': 'cloud',
      'nodehub.reason': 'only an API server can answer it consistently',
      'nodehub.upstream': `http://${host}`,
    },
    resource: { 'service.name': 'nodehub', 'k8s.node.name': 'edge-1' },
  })
  t.match(client, {
    traceId,
    parentSpanId: server?.spanId,
    name: 'GET',
    attributes: {
      'http.response.status_code': 200,
      'server.address': hostname,
      'server.port': Number(port),
    },
  })
  t.strictSame(contextAt(cloud, aPod), [[`00-${traceId}-${client?.spanId}-01`, 'vendor=1']])
})

void t.test('the fields of a trace that is not recorded pass untouched', async (t) => {
  const off = await start(t, () => [])
  await off.hub.as('kubelet').send(aPod, continuing(sampled))
  await off.hub.as('kubelet').get(aPod)
  const untouched = [
    [sampled, 'vendor=1'],
    [undefined, undefined],
  ]
  t.strictSame(contextAt(off.cloud, aPod), untouched, 'tracing is off')

  const on = await start(t, ({ url }) => [`--tracing-endpoint=${url}`])
  await on.hub.as('kubelet').send(aPod, continuing(unsampled))
  await on.hub.as('kubelet').get(aPod)
  t.strictSame(
    contextAt(on.cloud, aPod),
    [[unsampled, 'vendor=1'], untouched[1]],
    'the trace is not sampled',
  )
  await on.hub.stop()
  t.equal(on.receiver.bodies.length, 0)
})

void t.test('the trace of a caller that is not proven is not continued', async (t) => {
  const { cloud, receiver, hub } = await start(t, ({ url }) => [`--tracing-endpoint=${url}`])
  await hub.as('agent', { token: 'not-a-token-of-the-cluster' }).send(aPod, continuing(sampled))
  t.match(contextAt(cloud, aPod), [[sampled, 'vendor=1']])
  await hub.stop()
  t.equal(receiver.bodies.length, 0)
})

void t.test('each attempt at an API server has a span', async (t) => {
  const [first, second, receiver] = await Promise.all([
    startCloud(t),
    startCloud(t),
    otlpReceiver(t),
  ])
  second.addPods('a')
  const hub = await startOnlineHub(t, {
    upstreams: [first, second],
    flags: ['--lb-mode=priority', ...everyRequest(receiver)],
  })
  first.sandbox.faults.reset(({ url }) => url === aPod)
  t.equal((await hub.as('kubelet').send(aPod)).status, 200)
  await hub.stop()
  const [server] = ofKind(receiver.spans, 'server')
  const port = ({ url }: typeof first): number => Number(new URL(url).port)
  t.match(ofKind(receiver.spans, 'client'), [
    {
      parentSpanId: server?.spanId,
      failed: true,
      attributes: { 'server.port': port(first), 'error.type': String },
    },
    {
      parentSpanId: server?.spanId,
      failed: false,
      attributes: { 'server.port': port(second), 'http.response.status_code': 200 },
    },
  ])
})

void t.test('an answer of the cache is explained, and its read has a span', async (t) => {
  const { cloud, receiver, hub } = await start(t, everyRequest)
  await hub.as('kubelet').list(podsOfNode)
  await goOffline(cloud, hub)
  await hub.as('kubelet').list(podsOfNode)
  await hub.as('kubelet').send('/api/v1/namespaces/default/secrets/none')
  await hub.stop()
  const offline = ofKind(receiver.spans, 'server').filter(
    ({ attributes }) => attributes['nodehub.source'] !== 'cloud',
  )
  const [list, refused] = offline
  t.match(list, {
    name: 'GET /api/v1/pods',
    failed: false,
    attributes: { 'nodehub.source': 'cache', 'nodehub.reason': 'no API server is healthy' },
  })
  t.type(list?.attributes['nodehub.age'], 'number')
  t.match(refused, {
    failed: true,
    attributes: {
      'nodehub.source': 'hub',
      'http.response.status_code': 503,
      'error.type': '503',
    },
  })
  const [read] = ofKind(receiver.spans, 'internal')
  t.match(read, { name: 'read the store', parentSpanId: list?.spanId })
})

void t.test('the span of a watch ends when it is set up; spans are counted', async (t) => {
  const { receiver, hub } = await start(t, everyRequest)
  const { resourceVersion } = await hub.as('kubelet').list(podsOfNode)
  await hub.as('kubelet').watch(podsOfNode, { resourceVersion })
  const watched = () =>
    receiver.spans.find(({ attributes }) => attributes['nodehub.verb'] === 'watch')
  await receiver.receives(() => watched() !== undefined)
  await counted(hub, 'exported')
  const watch = watched()
  t.match(watch, { attributes: { 'http.response.status_code': 200 } })
})

void t.test('no token and no query is exported', async (t) => {
  const { cloud, receiver, hub } = await start(t, everyRequest)
  const token = await cloud.readerToken()
  await hub.as('agent', { token }).get(`${aPod}?pretty=a-value-of-the-query`)
  await hub.as('kubelet').send(`${aPod}/log?secret=a-value-of-the-query`)
  await hub.stop()
  const exported = receiver.bodies.join('')
  t.match(exported, aPod)
  t.notMatch(exported, token)
  t.notMatch(exported, 'a-value-of-the-query')
})

void t.test('a collector that refuses spans is logged once', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const receiver = await otlpReceiver(t, (response) => void response.writeHead(400).end())
  const hub = await startOnlineHub(t, { upstreams: [cloud], flags: everyRequest(receiver) })
  const perBatch = 512
  for (let i = 0; i < perBatch; i++) await hub.as('kubelet').get(aPod)
  await counted(hub, 'failed', perBatch + 1)
  const said = hub.lines.filter((line) => line.includes('does not take spans'))
  t.equal(said.length, 1)
})
