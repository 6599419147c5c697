/**
 * Records of TLS that carry next to nothing cost the hub ten microseconds each, and a client of TLS
 * 1.3 may send as many as it likes that never reach a request (KeyUpdate): one connection stopped
 * the hub for a second, a hundred for as long as they went on.
 */
import { once } from 'node:events'
import { connect as connectPlain, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { nodeIdentity, tokenHolder } from '../../src/api/request/identity.ts'
import type { WireReply } from '../../src/http/exchange/exchange.ts'
import { limits } from '../../src/http/server/limits.ts'
import { listenSecurely, type ListenerOptions } from '../../src/http/server/listener.ts'
import { startCloud } from '../kit/cloud.ts'
import { startTestHub } from '../kit/hub.ts'
import { wholeReply, unbounded } from '../kit/listener.ts'
import { inTime, until } from '../kit/until.ts'

const hubs = await CertificateAuthority.create('hub')

/** With 22 bytes around each they have more than 32 KiB. */
const records = 2_000
/** These have less. */
const fewRecords = 1_000
/** What a record has at most. */
const wholeRecord = Buffer.alloc(16 * 1024, 'x')

interface Listening {
  /** `over`: instead of a connection of its own. */
  readonly dial: (over?: (port: number) => Duplex) => Promise<TLSSocket>
  readonly cuts: readonly string[]
}

async function listening(t: Test, options: Partial<ListenerOptions> = {}): Promise<Listening> {
  const cuts: string[] = []
  const listener = await listenSecurely({
    at: [{ host: '127.0.0.1', port: 0 }],
    maxConnections: 100,
    memory: unbounded(),
    credentials: await hubs.issue({
      commonName: 'hub',
      usage: 'server',
      ipAddresses: ['127.0.0.1'],
    }),
    onBroken: () => undefined,
    onCut: (why) => cuts.push(why),
    handler: async ({ url, onProven, onDisproven }) => {
      if (url === '/node') onProven?.(nodeIdentity)
      if (url === '/account' || url === '/revoked') onProven?.(tokenHolder('hash'))
      if (url !== '/revoked') return wholeReply('ok')
      onDisproven?.()
      return { ...wholeReply('no'), status: 401 } as WireReply
    },
    ...options,
  })
  t.teardown(() => listener.close(0))
  const { port } = listener
  const dial = async (over?: (port: number) => Duplex): Promise<TLSSocket> => {
    const at = over ? { socket: over(port) } : { port }
    const socket = connect({ ...at, host: '127.0.0.1', ca: hubs.certificate })
    t.teardown(() => socket.destroy())
    socket.on('error', () => undefined).setNoDelay()
    await once(socket, 'secureConnect')
    return socket
  }
  return { dial, cuts }
}

/** Each of its bytes in a record of its own. */
async function sendByBytes(socket: TLSSocket, text: string): Promise<void> {
  for (const byte of text) {
    if (socket.destroyed) return
    await new Promise<void>((resolve) => void socket.write(byte, () => resolve()))
  }
}

/**
 * The cut may come as a reset, which is an error before, or as an end, which is seen only where the
 * answer before it is read.
 */
const closing = (socket: TLSSocket): Promise<void> =>
  new Promise((resolve) => void socket.resume().once('close', () => resolve()))

const head = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n`
const longBody = 'POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10000000\r\n\r\n'

/** A relay that passes on all but the last bytes of what is as long as the longest record. */
class Link extends Duplex {
  readonly #to: Socket
  #waiting = Buffer.alloc(0)
  isHolding = false

  constructor(port: number) {
    super()
    this.#to = connectPlain(port, '127.0.0.1').on('error', () => undefined)
    this.#to.on('data', (part) => this.push(part)).on('close', () => this.destroy())
  }

  override _read(): void {}

  override _write(part: Buffer, _encoding: string, done: () => void): void {
    this.#waiting = Buffer.concat([this.#waiting, part])
    const isLong = this.#waiting.byteLength > wholeRecord.byteLength
    if (!this.isHolding || isLong) this.#letGo(this.isHolding ? 10 : 0)
    done()
  }

  #letGo(butLast: number): void {
    const end = this.#waiting.byteLength - butLast
    this.#to.write(this.#waiting.subarray(0, end))
    this.#waiting = this.#waiting.subarray(end)
  }

  override _destroy(_cause: Error | null, done: () => void): void {
    this.#to.destroy()
    done()
  }

  letGo(): void {
    this.isHolding = false
    this.#letGo(0)
  }
}

void t.test('a connection of records that carry next to nothing is cut', async (t) => {
  const { dial, cuts } = await listening(t)
  const socket = await dial()
  const closed = closing(socket)
  await sendByBytes(socket, `${head('/')}Filler: ${'x'.repeat(records)}`)
  await inTime('the cut', closed)
  t.strictSame(cuts, ['records'])
})

void t.test('a connection with little record overhead is not cut', async (t) => {
  const { dial, cuts } = await listening(t)
  const socket = await dial()
  await sendByBytes(socket, `${head('/')}Filler: ${'x'.repeat(fewRecords)}\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  t.match(answer.toString(), /^HTTP\/1.1 200/)
  t.strictSame(cuts, [])
})

void t.test('a record whose end has not arrived is not cut', async (t) => {
  const { dial, cuts } = await listening(t)
  let link: Link | undefined
  const slow = await dial((port) => (link = new Link(port)))
  slow.write(longBody)
  await once(slow, 'data')
  if (link) link.isHolding = true
  slow.write(wholeRecord)
  const flooding = await dial()
  const closed = closing(flooding)
  await sendByBytes(flooding, `${head('/')}Filler: ${'x'.repeat(records)}`)
  await inTime('a look at the connections', closed)
  t.strictSame(cuts, ['records'])
  t.notOk(slow.closed)
})

void t.test('a little content does not make up for many tiny records', async (t) => {
  const { dial, cuts } = await listening(t)
  const socket = await dial()
  const closed = closing(socket)
  socket.write(longBody)
  for (let i = 0; i < records / 5 && !socket.destroyed; i++) {
    socket.write('x'.repeat(500))
    await sendByBytes(socket, 'xxxxx')
  }
  await inTime('the cut', closed)
  t.strictSame(cuts, ['records'])
})

void t.test('a proven caller may send tiny records', async (t) => {
  const { dial, cuts } = await listening(t)
  const socket = await dial()
  socket.write(`${head('/node')}\r\n`)
  await once(socket, 'data')
  await sendByBytes(socket, `${head('/')}Filler: ${'x'.repeat(records)}\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  t.match(answer.toString(), /^HTTP\/1.1 200/)
  t.strictSame(cuts, [])
})

void t.test('once the proof is withdrawn, records are counted again', async (t) => {
  const { dial, cuts } = await listening(t)
  const flood = (socket: TLSSocket) =>
    sendByBytes(socket, `${head('/')}Filler: ${'x'.repeat(records)}\r\n\r\n`)
  const socket = await dial()
  const closed = closing(socket)
  socket.write(`${head('/account')}\r\n`)
  await once(socket, 'data')
  await flood(socket)
  await once(socket, 'data')
  const other = await dial()
  const otherClosed = closing(other)
  await flood(other)
  await inTime('a look at the connections', otherClosed)
  socket.write(`${head('/revoked')}\r\n`)
  await once(socket, 'data')
  t.strictSame(cuts, ['records'])
  await flood(socket)
  await inTime('the cut', closed)
  t.strictSame(cuts, ['records', 'records'])
})

void t.test('an upgrade of a token that the cloud has not seen before is no flood', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  cloud.addPods('a')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  const reach = async (): Promise<TLSSocket> => {
    const socket = connect({ port: hub.hub.proxySecurePort, rejectUnauthorized: false })
    t.teardown(() => socket.destroy())
    socket.on('error', () => undefined).setNoDelay()
    await once(socket, 'secureConnect')
    return socket
  }
  const typing = await reach()
  typing.write(
    [
      'POST /api/v1/namespaces/default/pods/a/exec?command=cat&stdin=true&stdout=true HTTP/1.1',
      'Host: localhost',
      `Authorization: Bearer ${cloud.sandbox.token('jane')}`,
      'Connection: Upgrade',
      'Upgrade: SPDY/3.1',
      'X-Stream-Protocol-Version: v4.channel.k8s.io',
      '',
      '',
    ].join('\r\n'),
  )
  const [answer] = (await once(typing, 'data')) as [Buffer]
  t.match(answer.toString('latin1'), /^HTTP\/1.1 101/)
  await sendByBytes(typing.resume(), 'x'.repeat(records))
  const flooding = await reach()
  const closed = closing(flooding)
  await sendByBytes(flooding, `${head('/')}Filler: ${'x'.repeat(records)}`)
  await inTime('a look at the connections', closed)
  t.notOk(typing.closed)
  t.equal(await hub.metric('nodehub_connections_cut_total{reason="records"}'), 1)
})

void t.test('a head as large as heads may be is no flood', async (t) => {
  const { dial, cuts } = await listening(t)
  const socket = await dial()
  for (let i = 0; i < 20; i++) {
    socket.write(`${head('/')}Filler: ${'x'.repeat(limits.headBytes / 4)}\r\n\r\n`)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    t.match(answer.toString(), /^HTTP\/1.1 200/)
  }
  t.strictSame(cuts, [])
})

void t.test('unproven connections are limited, and the oldest is closed', async (t) => {
  const { dial, cuts } = await listening(t, { mostUnproven: 3 })
  const known = await dial()
  known.write(`${head('/node')}\r\n`)
  await once(known, 'data')
  const sockets: TLSSocket[] = []
  for (let i = 0; i < 4; i++) sockets.push(await dial())
  await until('the oldest to go', () => sockets[0]?.resume().closed)
  t.strictSame(cuts, ['full'])
  t.strictSame(
    [known, ...sockets].map(({ closed }) => closed),
    [false, true, false, false, false],
  )
})

void t.test('connections whose proof is withdrawn count as unproven', async (t) => {
  const { dial, cuts } = await listening(t, { mostUnproven: 2 })
  const sockets: TLSSocket[] = []
  for (let i = 0; i < 3; i++) {
    const socket = await dial()
    sockets.push(socket)
    socket.write(`${head('/account')}\r\n`)
    await once(socket, 'data')
  }
  for (const socket of sockets) {
    socket.write(`${head('/revoked')}\r\n`)
    await once(socket, 'data')
  }
  await until('the first to go', () => sockets[0]?.resume().closed)
  t.strictSame(cuts, ['full'])
  t.strictSame(
    sockets.map(({ closed }) => closed),
    [true, false, false],
  )
})

void t.test('a hub keeps at most 128 unproven connections', async (t) => {
  const cloud = await startCloud(t)
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const sockets: TLSSocket[] = []
  for (let i = 0; i <= 128; i++) {
    const socket = connect({ port: hub.hub.proxySecurePort, rejectUnauthorized: false }).resume()
    t.teardown(() => socket.destroy())
    socket.on('error', () => undefined)
    await once(socket, 'secureConnect')
    sockets.push(socket)
  }
  await until('the first to go', () => sockets[0]?.closed)
  t.equal(sockets.filter(({ closed }) => closed).length, 1)
})
