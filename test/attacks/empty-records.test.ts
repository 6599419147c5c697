/**
 * Records of TLS that carry next to nothing cost the hub ten microseconds each, and a client of TLS
 * 1.3 may send as many as it likes that never reach a request (KeyUpdate): one connection stopped
 * the hub for a second, a hundred for as long as they went on.
 */
import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { nodeIdentity } from '../../src/api/request/identity.ts'
import { limits } from '../../src/http/server/limits.ts'
import { listenSecurely, type ListenerOptions } from '../../src/http/server/listener.ts'
import { startCloud } from '../kit/cloud.ts'
import { startTestHub } from '../kit/hub.ts'
import { said, unbounded } from '../kit/listener.ts'
import { inTime, until } from '../kit/until.ts'

const hubs = new CertificateAuthority('hub')

/** With 22 bytes around each they have more than 16 KiB. */
const records = 1_000
/** These have less. */
const fewRecords = 500

interface Listening {
  readonly dial: () => Promise<TLSSocket>
  readonly cuts: readonly string[]
}

async function listening(t: Test, options: Partial<ListenerOptions> = {}): Promise<Listening> {
  const cuts: string[] = []
  const listener = await listenSecurely({
    at: [{ host: '127.0.0.1', port: 0 }],
    maxConnections: 100,
    memory: unbounded(),
    credentials: hubs.issue({ commonName: 'hub', usage: 'server', ipAddresses: ['127.0.0.1'] }),
    onBroken: () => undefined,
    onCut: (why) => cuts.push(why),
    handler: async ({ url, onProven }) => {
      if (url === '/node') onProven?.(nodeIdentity)
      return said('ok')
    },
    ...options,
  })
  t.teardown(() => listener.close(0))
  const dial = async (): Promise<TLSSocket> => {
    const socket = connect({ port: listener.port, host: '127.0.0.1', ca: hubs.certificate })
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

const head = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n`

void t.test('a connection of records that carry next to nothing is cut', async (t) => {
  const { dial, cuts } = await listening(t)
  const socket = await dial()
  const closed = once(socket, 'close')
  await sendByBytes(socket, `${head('/')}Filler: ${'x'.repeat(records)}`)
  await inTime('the cut', closed)
  t.strictSame(cuts, ['records'])
})

void t.test('less than 16 KiB around content are not too much', async (t) => {
  const { dial, cuts } = await listening(t)
  const socket = await dial()
  await sendByBytes(socket, `${head('/')}Filler: ${'x'.repeat(fewRecords)}\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  t.match(answer.toString(), /^HTTP\/1.1 200/)
  t.strictSame(cuts, [])
})

void t.test('a caller that is proven may send what it likes', async (t) => {
  const { dial, cuts } = await listening(t)
  const socket = await dial()
  socket.write(`${head('/node')}\r\n`)
  await once(socket, 'data')
  await sendByBytes(socket, `${head('/')}Filler: ${'x'.repeat(records)}\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  t.match(answer.toString(), /^HTTP\/1.1 200/)
  t.strictSame(cuts, [])
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

void t.test('connections on which nobody is proven are few, the oldest go', async (t) => {
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

void t.test('of a hub they are 128', async (t) => {
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
