import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:http'
import type { Duplex } from 'node:stream'
import t from 'tap'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { pod, pods } from './client.ts'

interface Upgraded {
  readonly answer: IncomingMessage
  readonly socket: Duplex
}

async function upgrade(
  sandbox: Sandbox,
  path: string,
  headers: Record<string, string>,
  method = 'GET',
): Promise<Upgraded> {
  const asking = request(`${sandbox.url}/api/v1/namespaces/default/pods/${path}`, {
    method,
    headers: { Connection: 'Upgrade', ...headers },
  })
  asking.end()
  const [answer, socket] = (await once(asking, 'upgrade')) as [IncomingMessage, Duplex]
  return { answer, socket }
}

const key = randomBytes(16).toString('base64')
const webSocket = {
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': key,
  'Sec-WebSocket-Protocol': 'v5.channel.k8s.io, v4.channel.k8s.io',
}

async function start(): Promise<Sandbox> {
  const sandbox = await startSandbox({ tls: false })
  sandbox.create(pods, pod('p'))
  return sandbox
}

void t.test('an upgrade is accepted, and every byte comes back', async (t) => {
  await using sandbox = await start()
  const accepted = createHash('sha1')
    .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64')
  for (const [method, given, answered] of [
    [
      'GET',
      webSocket,
      { 'sec-websocket-protocol': 'v5.channel.k8s.io', 'sec-websocket-accept': accepted },
    ],
    [
      'POST',
      { Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': 'v4.channel.k8s.io' },
      { upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'v4.channel.k8s.io' },
    ],
  ] as const) {
    const { answer, socket } = await upgrade(sandbox, 'p/portforward', given, method)
    t.match(answer.headers, answered)
    const sent = randomBytes(200_000)
    socket.write(sent)
    const chunks: Buffer[] = []
    let length = 0
    for await (const chunk of socket) {
      chunks.push(chunk as Buffer)
      length += (chunk as Buffer).length
      if (length >= sent.length) break
    }
    t.ok(Buffer.concat(chunks).equals(sent))
  }
})

void t.test('a log goes on while it is followed', async (t) => {
  await using sandbox = await start()
  sandbox.log('default', 'p', 'one\ntwo\n')
  const asking = request(
    `${sandbox.url}/api/v1/namespaces/default/pods/p/log?follow=true&tailLines=1`,
  )
  asking.end()
  const [answer] = (await once(asking, 'response')) as [IncomingMessage]
  t.equal(answer.headers['content-type'], 'text/plain')
  const parts = answer[Symbol.asyncIterator]()
  t.equal(String((await parts.next()).value), 'two\n')
  sandbox.log('default', 'p', 'three\n')
  t.equal(String((await parts.next()).value), 'three\n')
  answer.destroy()
})
