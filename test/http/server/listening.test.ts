import t from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { get, createServer as createHttpServer } from 'node:http'
import { connect, createServer, type AddressInfo, type Server } from 'node:net'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { bindServer } from '../../../src/http/server/listening.ts'
import { listeningFd } from '../../kit/listening-fd.ts'

const ignore = (): void => undefined

void t.test('a server that fails after it has listened reports it, and stays', async (t) => {
  const server = createServer()
  t.teardown(() => server.close())
  const broken: unknown[] = []
  const onBroken = (cause: unknown): unknown => broken.push(cause)
  const { port } = await bindServer(server, [{ host: '127.0.0.1', port: 0 }], onBroken)
  t.ok(port > 0)
  const causes = [new Error('EMFILE'), new Error('EMFILE')]
  for (const cause of causes) server.emit('error', cause)
  t.strictSame(broken, causes)
})

void t.test('a port that is taken is an error of the start alone', async (t) => {
  const [first, second] = [createServer(), createServer()]
  t.teardown(() => first.close())
  const broken: unknown[] = []
  const onBroken = (cause: unknown): unknown => broken.push(cause)
  const { port } = await bindServer(first, [{ host: '127.0.0.1', port: 0 }], onBroken)
  await t.rejects(bindServer(second, [{ host: '127.0.0.1', port }], onBroken), {
    code: 'EADDRINUSE',
    message: `127.0.0.1:${port} is taken: "${process.execPath}" (process ${process.pid}, uid ${process.getuid?.()}) listens at 127.0.0.1:${port}`,
  })
  t.strictSame(broken, [])
})

void t.test(
  'a passed socket is served, and its port stays taken, whichever process bound it',
  async (t) => {
    const holder = createServer()
    t.teardown(() => holder.close())
    const { port: held } = await bindServer(holder, [{ host: '127.0.0.1', port: 0 }], ignore)
    const child = spawn(process.execPath, [join(import.meta.dirname, 'passed-on.ts')], {
      stdio: ['ignore', 'pipe', 'inherit', listeningFd(holder)],
    })
    t.teardown(() => child.kill('SIGKILL'))
    const [said] = (await once(child.stdout as Readable, 'data')) as [Buffer]
    t.equal(Number(said.toString()), held)
    holder.close()
    await once(holder, 'close')
    t.equal(await text(connect(held, '127.0.0.1')), 'hello')
    const other = createServer()
    await t.rejects(bindServer(other, [{ host: '127.0.0.1', port: held }], ignore), {
      code: 'EADDRINUSE',
    })
  },
)

void t.test('a server that listens can listen at one more address, on its port', async (t) => {
  const server = createServer((socket) => socket.end('hello'))
  const bound = await bindServer(server, [{ host: '127.0.0.1', port: 0 }], ignore)
  const { port } = bound
  await bound.listenAt({ host: '127.0.0.2' })
  await bound.listenAt({ host: '127.0.0.2' })
  t.strictSame(
    bound.sockets.map(({ at }) => at),
    ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, port })),
    'and once',
  )
  t.equal(await text(connect(port, '127.0.0.2')), 'hello')
  const other = createServer().listen(port, '127.0.0.3')
  await once(other, 'listening')
  await t.rejects(bound.listenAt({ host: '127.0.0.3', portFlag: '--proxy-port' }), {
    code: 'EADDRINUSE',
    portFlag: '--proxy-port',
  })
  t.equal(bound.sockets.length, 2)
  other.close()
  const over = bound.closeAdditional()
  server.close()
  await over
  await bound.listenAt({ host: '127.0.0.3' })
  t.equal(bound.sockets.length, 2, 'and not once it closes')
})

void t.test('a server that listens everywhere opens no further address', async (t) => {
  const server = createServer()
  t.teardown(() => server.close())
  const bound = await bindServer(server, [{ host: '0.0.0.0', port: 0 }], ignore)
  await bound.listenAt({ host: '127.0.0.2' })
  t.equal(bound.sockets.length, 1)
})

void t.test('a descriptor that is no socket is refused', async (t) => {
  const server = createServer()
  const folder = openSync(import.meta.dirname, 'r')
  t.teardown(() => closeSync(folder))
  await t.rejects(
    bindServer(server, [{ fd: folder }], () => undefined),
    { message: `the socket passed as file descriptor ${folder} cannot be used` },
  )
})

const pair = [
  { host: '127.0.0.1', port: 0 },
  { host: '::1', port: 0, ifPresent: true },
]

void t.test('a server listens at each of its addresses, under one port', async (t) => {
  const server = createHttpServer((request, response) => {
    response.end(`${request.socket.localAddress} of ${request.url}`)
  })
  t.teardown(() => server.closeAllConnections())
  const { port, sockets, closeAdditional } = await bindServer(server, pair, ignore)
  t.strictSame(
    sockets.map(({ at }) => at),
    ['127.0.0.1', '::1'].map((address) => ({ address, port })),
  )
  for (const host of ['127.0.0.1', '::1']) {
    const [answer] = (await once(get({ host, port, path: '/here', agent: false }), 'response')) as [
      Readable,
    ]
    t.equal(await text(answer), `${host} of /here`)
  }
  const over = closeAdditional()
  server.close()
  await Promise.all([over, once(server, 'close')])
  const next = createServer()
  t.teardown(() => next.close())
  t.equal(
    (await bindServer(next, [{ host: '::1', port }], ignore)).port,
    port,
    'and lets go of both',
  )
})

void t.test('a server that cannot listen at one address listens at none', async (t) => {
  const squatter = createServer()
  t.teardown(() => squatter.close())
  const { port } = await bindServer(squatter, [{ host: '::1', port: 0 }], ignore)
  const places = pair.map((place) => ({ ...place, port, portFlag: '--proxy-port' }))
  await t.rejects(bindServer(createServer(), places, ignore), {
    code: 'EADDRINUSE',
    message: new RegExp(`^\\[::1\\]:${port} is taken: .*; --proxy-port sets another port$`),
  })
  const next = createServer()
  t.teardown(() => next.close())
  t.equal((await bindServer(next, [{ host: '127.0.0.1', port }], ignore)).port, port)
})

void t.test('an optional address that the host lacks is left out', async (t) => {
  const server = createServer()
  t.teardown(() => server.close())
  const places = [
    { host: '127.0.0.1', port: 0 },
    // Of a network for documentation (RFC 3849).
    { host: '2001:db8::1', port: 0, ifPresent: true },
  ]
  const { port, sockets } = await bindServer(server, places, ignore)
  t.match(sockets, [{ at: { address: '127.0.0.1', port } }])
  t.equal(sockets.length, 1)
  await t.rejects(bindServer(createServer(), [{ host: '2001:db8::1', port: 0 }], ignore), {
    code: 'EADDRNOTAVAIL',
  })
})

void t.test('a port is chosen that is free at every address', async (t) => {
  const server = createServer()
  t.teardown(() => server.close())
  // The first port that is drawn is another's by the time the second place is bound.
  const squatter = createServer()
  t.teardown(() => squatter.close())
  const portOf = (each: Server): number => (each.address() as AddressInfo).port
  server.prependOnceListener('listening', () => squatter.listen(portOf(server), '::1'))
  const { port, sockets, closeAdditional } = await bindServer(server, pair, ignore)
  t.teardown(closeAdditional)
  t.equal(sockets.length, 2)
  t.not(port, portOf(squatter))
})
