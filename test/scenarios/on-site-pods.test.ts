import { goOnline } from '../kit/hub.ts'
import { connect } from 'node:tls'
import { once } from 'node:events'
import t from 'tap'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { textAt, valueAt } from '../../src/api/kube/json-at.ts'
import { validityOf } from '../kit/certificates.ts'
import { nodeName } from '../kit/cloud.ts'
import { asRoot, startSite, type Site } from '../kit/site.ts'
import { Wire } from '../kit/wire/wire.ts'

const skip = process.getuid?.() === 0 ? false : 'the hub trusts a kubelet of root only'

const podA = '/api/v1/namespaces/default/pods/a'

void t.test('without the cloud the logs of a pod come from its kubelet', { skip }, async (t) => {
  const site = await startSite(t)
  const kubectl = asRoot(site)
  const { status, body } = await kubectl.get(
    `${podA}/log?follow=true&previous=false&tailLines=3&sinceTime=2026-01-01T00%3A00%3A00Z&insecureSkipTLSVerifyBackend=true`,
  )
  t.strictSame([status, body.toString()], [200, 'a line\n'])
  await kubectl.get('/api/v1/namespaces/default/pods/two/log?container=side&previous=true')
  t.strictSame(site.kubelet.requests, [
    'GET /containerLogs/default/a/main?follow=true&sinceTime=2026-01-01T00%3A00%3A00Z&tailLines=3',
    'GET /containerLogs/default/two/side?previous=true',
  ])
})

void t.test('a followed log comes line by line, and ends with its reader', { skip }, async (t) => {
  const { promise: left, resolve: leave } = Promise.withResolvers<void>()
  let write: (line: string) => void = () => undefined
  const site = await startSite(t, {
    answer: (_request, response) => {
      response.on('close', () => leave())
      write = (line) => void response.write(line)
      write('first\n')
    },
  })
  const answer = await asRoot(site).open(`${podA}/log?follow=true`)
  const lines = answer[Symbol.asyncIterator]()
  t.equal(String((await lines.next()).value), 'first\n')
  write('second\n')
  t.equal(String((await lines.next()).value), 'second\n')
  answer.destroy()
  await left
})

void t.test(
  'a followed log goes on when the link returns, also where its certificate has expired',
  { skip },
  async (t) => {
    let write: (line: string) => void = () => undefined
    const site = await startSite(t, {
      answer: (_request, response) => {
        write = (line) => void response.write(line)
        write('first\n')
      },
    })
    const { cloud, hub, own } = site
    const kubectl = asRoot(site)
    t.equal((await kubectl.get(podA)).status, 200, 'while it is valid')
    const end = validityOf(own).validTo
    t.capture(Date, 'now', () => end + 60_000)
    const answer = await kubectl.open(`${podA}/log?follow=true`)
    t.equal(answer.statusCode, 200)
    const lines = answer[Symbol.asyncIterator]()
    t.equal(String((await lines.next()).value), 'first\n')
    await goOnline(cloud, hub)
    t.equal((await kubectl.get(podA)).status, 401, 'nothing else is begun with it')
    write('second\n')
    t.equal(String((await lines.next()).value), 'second\n')
    answer.destroy()
  },
)

void t.test('a kubelet that refuses is heard', { skip }, async (t) => {
  const site = await startSite(t, {
    answer: (_request, response) => response.writeHead(400).end('previous one not found\n'),
  })
  const refused = await asRoot(site).get(`${podA}/log?previous=true`)
  const { code, message } = JSON.parse(refused.body.toString()) as { code: number; message: string }
  t.strictSame([refused.status, code, message], [400, 400, 'previous one not found'])
})

for (const [protocol, request] of [
  ['SPDY/3.1', 'POST'],
  ['websocket', 'GET'],
] as const) {
  void t.test(`a command runs in a pod over ${protocol}`, { skip }, async (t) => {
    const site = await startSite(t, {
      upgrade: (asked, socket) => {
        socket.write(
          `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${asked.headers.upgrade}\r\n\r\n`,
        )
        socket.pipe(socket)
      },
    })
    const wire = await upgraded(
      site,
      `${request} ${podA}/exec?command=echo&command=a%20b&stdin=true&stdout=true&stderr=false&tty=true`,
      protocol,
    )
    t.equal((await wire.head()).line, 'HTTP/1.1 101 Switching Protocols')
    wire.write('there and back')
    t.equal(await wire.take(14), 'there and back')
    t.strictSame(site.kubelet.requests, [
      `${request} /exec/default/a/main?input=1&output=1&tty=1&command=echo&command=a+b`,
    ])
    const forward = await upgraded(
      site,
      `${request} ${podA}/portforward?ports=80&ports=81`,
      protocol,
    )
    t.equal((await forward.head()).line, 'HTTP/1.1 101 Switching Protocols')
    t.equal(site.kubelet.requests[1], `${request} /portForward/default/a?port=80%2C81`)
  })
}

async function upgraded({ own, hub }: Site, line: string, protocol: string): Promise<Wire> {
  const { certificate, key } = own
  const socket = connect({
    port: hub.hub.proxySecurePort,
    host: '127.0.0.1',
    ca: hub.ca,
    cert: certificate,
    key,
  })
  await once(socket, 'secureConnect')
  const ofWebSocket =
    protocol === 'websocket'
      ? 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
      : 'Content-Length: 0\r\n'
  return new Wire(socket).write(
    `${line} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${ofWebSocket}\r\n`,
  )
}

void t.test('only the kubelet’s certificate gives access to logs', { skip }, async (t) => {
  const site = await startSite(t)
  const { hub, kubelet } = site
  const bySocket = await hub.as('kubectl').get(`${podA}/log`)
  t.match(
    [bySocket.status, bySocket.body.toString()],
    [403, /the kubelet's certificate/],
    'a container may be root there',
  )
  t.equal((await hub.as('kubectl', { token: 'stolen' }).get(`${podA}/log`)).status, 401)
  t.strictSame(kubelet.requests, [])
})

void t.test('a log request without a known container is refused', { skip }, async (t) => {
  const site = await startSite(t)
  const kubectl = asRoot(site)
  const messageOf = async (path: string): Promise<unknown> => {
    const { status, body } = await kubectl.get(path)
    return [status, textAt(JSON.parse(body.toString()) as Json, 'message')]
  }
  t.strictSame(await messageOf('/api/v1/namespaces/default/pods/two/log'), [
    400,
    'a container name must be specified for pod two, choose one of: [main side]',
  ])
  t.strictSame(await messageOf(`${podA}/log?container=none`), [
    400,
    'container none is not valid for pod a',
  ])
  t.match(await messageOf('/api/v1/namespaces/default/pods/other/log'), [
    503,
    /pod default\/other is not known to run on this node/,
  ])
  t.strictSame(site.kubelet.requests, [])
})

void t.test(
  'a review of the kubelet is allowed for the hub alone, on its own node',
  { skip },
  async (t) => {
    const { hub } = await startSite(t)
    const asked = async (spec: JsonObject): Promise<unknown> => {
      const { status, body } = await hub
        .as('kubelet')
        .send('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
          method: 'POST',
          body: { kind: 'SubjectAccessReview', apiVersion: 'authorization.k8s.io/v1', spec },
        })
      return status === 201
        ? valueAt(JSON.parse(body.toString()) as Json, 'status', 'allowed')
        : status
    }
    const user = `system:node:${nodeName}`
    const use = { verb: 'get', resource: 'nodes', subresource: 'proxy', name: nodeName }
    t.equal(await asked({ user, resourceAttributes: use }), true)
    for (const spec of [
      { user: 'system:node:edge-2', resourceAttributes: use },
      { user: 'system:serviceaccount:default:default', resourceAttributes: use },
      { user, resourceAttributes: { ...use, name: 'edge-2' } },
      { user, resourceAttributes: { ...use, verb: 'delete' } },
      { user, resourceAttributes: { ...use, resource: 'pods' } },
      { user, resourceAttributes: { ...use, subresource: '' } },
      { user, nonResourceAttributes: { path: '/', verb: 'get' } },
    ])
      t.equal(await asked(spec), 503, JSON.stringify(spec))
  },
)
