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
  readonly head: Buffer
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
  const [answer, socket, head] = (await once(asking, 'upgrade')) as [
    IncomingMessage,
    Duplex,
    Buffer,
  ]
  return { answer, socket, head }
}

const key = randomBytes(16).toString('base64')
const webSocket = {
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': key,
  'Sec-WebSocket-Protocol': 'v5.channel.k8s.io, v4.channel.k8s.io',
}

/** All that the server sent until it closed: opcode, channel, text. */
async function messages({ socket, head }: Upgraded): Promise<[number, number, string][]> {
  const chunks = [head]
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const found: [number, number, string][] = []
  for (let at = 0; at < bytes.length;) {
    const short = bytes[at + 1] ?? 0
    const start = at + (short === 126 ? 4 : 2)
    const length = short === 126 ? bytes.readUInt16BE(at + 2) : short
    const payload = bytes.subarray(start, start + length)
    const opcode = (bytes[at] ?? 0) & 0x0f
    found.push([opcode, payload[0] ?? 0, payload.subarray(1).toString()])
    at = start + length
  }
  return found
}

async function start(): Promise<Sandbox> {
  const sandbox = await startSandbox({ tls: false })
  sandbox.create(pods, pod('p'))
  return sandbox
}

void t.test('a command runs over a WebSocket and says how it ended', async (t) => {
  await using sandbox = await start()
  const done = await upgrade(sandbox, 'p/exec?command=hello&command=there&stdout=true', webSocket)
  t.equal(done.answer.headers['sec-websocket-protocol'], 'v5.channel.k8s.io')
  const accept = createHash('sha1')
    .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64')
  t.equal(done.answer.headers['sec-websocket-accept'], accept)
  const [output, result, close] = await messages(done)
  t.strictSame(output, [2, 1, 'hello there\n'])
  t.match(JSON.parse(result?.[2] ?? ''), { status: 'Success' })
  t.equal(result?.[1], 3)
  t.equal(close?.[0], 8)

  const failed = await messages(await upgrade(sandbox, 'p/exec?command=exit&command=3', webSocket))
  t.match(JSON.parse(failed.at(-2)?.[2] ?? ''), {
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: '3' }] },
  })
})

void t.test('SPDY is accepted, and every byte comes back', async (t) => {
  await using sandbox = await start()
  const headers = { Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': 'v4.channel.k8s.io' }
  const { answer, socket } = await upgrade(sandbox, 'p/portforward', headers, 'POST')
  t.match(answer.headers, { upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'v4.channel.k8s.io' })
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
