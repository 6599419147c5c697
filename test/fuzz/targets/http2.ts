import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type TLSSocket } from 'node:tls'
import { CertificateAuthority } from '../../../src/certificates/authority.ts'
import type { Incoming, WireReply } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { listenSecurely } from '../../../src/http/server/listener.ts'
import { openStream } from '../../kit/http2.ts'
import { frame, get, getFields, postFields, preface } from '../../kit/http2-frames.ts'
import { chunked, mutated } from '../mutate.ts'
import type { Random } from '../random.ts'
import { Finding, type Opening, type Target } from '../target.ts'

const settings = frame(4, 0, 0)
const many = (count: number, make: (stream: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, i) => make(2 * i + 1)))

const seeds = [
  Buffer.concat([settings, get(1)]),
  Buffer.concat([settings, frame(1, 4, 1, postFields), frame(0, 1, 1, Buffer.from('hello'))]),
  // Streams opened and reset at once, heads that go on without end, and control frames that each
  // want an answer.
  Buffer.concat([settings, many(400, (id) => Buffer.concat([get(id), frame(3, 0, id, Buffer.from('00000008', 'hex'))]))]),
  Buffer.concat([settings, frame(1, 1, 1, getFields), many(300, () => frame(9, 0, 1, Buffer.alloc(200, 'x')))]),
  Buffer.concat([settings, many(2_000, () => frame(6, 0, 0, Buffer.alloc(8)))]),
  Buffer.concat([settings, many(2_000, () => frame(4, 0, 0, Buffer.from('000400000000', 'hex')))]),
  Buffer.concat([settings, get(1), frame(8, 0, 1, Buffer.from('7fffffff', 'hex')), frame(8, 0, 0, Buffer.from('00000000', 'hex'))]),
  Buffer.concat([settings, get(1), get(1), get(4), get(0), frame(0, 1, 7, Buffer.alloc(64))]),
  Buffer.concat([settings, many(600, (id) => frame(1, 4, id, postFields))]),
  Buffer.concat([settings, get(1), frame(2, 0, 1, Buffer.from('00000001ff', 'hex')), frame(5, 4, 1, Buffer.alloc(8)), frame(7, 0, 0, Buffer.alloc(8))]),
] // prettier-ignore

/**
 * HTTP/2 on the TLS listener. Whatever frames come, every exchange is over when its client has
 * gone, and another client is answered.
 */
export const http2Target: Opening = {
  name: 'http2',
  open: async (): Promise<Target> => {
    const authority = await CertificateAuthority.create('hub')
    const own = await authority.issue({
      commonName: 'hub',
      usage: 'server',
      ipAddresses: ['127.0.0.1'],
    })
    const seen: Incoming[] = []
    const listener = await listenSecurely({
      at: [{ host: '127.0.0.1', port: 0 }],
      maxConnections: 100,
      credentials: own,
      onBroken: () => undefined,
      handler: (incoming) => echo(incoming, seen),
    })
    const trust = { host: '127.0.0.1', port: listener.port, ca: authority.certificate }
    return {
      name: 'http2',
      round: async (random) => {
        const socket = connect({ ...trust, ALPNProtocols: ['h2'] })
        await once(socket, 'secureConnect')
        const input = Buffer.concat([random.once(20) ? Buffer.alloc(0) : preface, inputOf(random)])
        await send(socket, chunked(random, input))
        for (let turns = 0; turns < 200 && seen.some(isOpen); turns++)
          await new Promise(setImmediate)
        if (seen.some(isOpen)) throw new Finding('an exchange outlives its client', input)
        const outcome = seen.length > 0 ? 'taken' : 'refused'
        seen.length = 0
        if (random.once(20)) await checkAnother(trust, input)
        return outcome
      },
      [Symbol.asyncDispose]: () => listener.close(0),
    }
  },
}

const inputOf = (random: Random): Buffer =>
  random.once(4) ? random.of(seeds) : mutated(random, random.of(seeds), seeds)

const isOpen = ({ signal }: Incoming): boolean => !signal.aborted

async function echo(incoming: Incoming, seen: Incoming[]): Promise<WireReply> {
  seen.push(incoming)
  try {
    for await (const _ of incoming.body ?? []) incoming.signal.throwIfAborted()
  } catch {
    // It broke off: so will the answer.
  }
  const body = Buffer.from('ok')
  const headers = new HeaderList(['Content-Length', '2'])
  return { kind: 'body', from: 'hub', status: 200, headers, body }
}

/** Sends the chunks, waits until nothing more is said, and breaks the connection off. */
async function send(socket: TLSSocket, chunks: readonly Buffer[]): Promise<void> {
  let read = 0
  socket.on('data', (chunk: Buffer) => (read += chunk.length)).on('error', () => undefined)
  for (const chunk of chunks) {
    if (chunk.length > 0 && socket.writable) socket.write(chunk)
    await new Promise(setImmediate)
  }
  for (let still = 0, last = -1; still < 12 && !socket.closed; still++) {
    await new Promise(setImmediate)
    if (read !== last) still = 0
    last = read
  }
  socket.destroy()
}

async function checkAnother(trust: { port: number; ca: string }, input: Buffer): Promise<void> {
  const session = connectHttp2(`https://127.0.0.1:${trust.port}`, { ca: trust.ca })
  session.on('error', () => undefined)
  const { body } = await openStream(session, { ':path': '/another' }).whole()
  session.destroy()
  if (body !== 'ok') throw new Finding('another client is not answered', input)
}
