import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import t from 'tap'
import type { Peer } from '../../src/exchange/exchange.ts'
import { SocketOwners } from '../../src/identity/socket-owner.ts'
import type { Teardown } from '../kit/wire/wire.ts'

const table = existsSync('/proc/net/tcp')
const ipv6 =
  existsSync('/proc/net/if_inet6') && readFileSync('/proc/net/if_inet6', 'utf8').includes(' lo')
const skipTable = table ? false : 'there is no /proc/net/tcp here'
const skipIpv6 = table && ipv6 ? false : 'there is no IPv6 on loopback here'
const uid = process.getuid?.()

const peerOf = (socket: Socket): Peer => ({
  address: socket.remoteAddress ?? '',
  port: socket.remotePort ?? 0,
  localAddress: socket.localAddress ?? '',
  localPort: socket.localPort ?? 0,
})

/** Both ends of a connection from `host` to a listener on `listenOn`. */
async function pair(
  t: Teardown,
  listenOn: string,
  host: string,
): Promise<{ near: Socket; far: Socket }> {
  const server = createServer({ allowHalfOpen: true })
  server.listen(0, listenOn)
  await once(server, 'listening')
  const near = connect((server.address() as AddressInfo).port, host)
  const [far] = (await once(server, 'connection')) as [Socket]
  far.on('error', () => undefined).resume()
  t.teardown(() => {
    near.destroy()
    far.destroy()
    server.close()
  })
  return { near, far }
}

void t.test(
  'a connection within the host is owned by the user that made it',
  { skip: skipTable },
  async (t) => {
    const { far } = await pair(t, '127.0.0.1', '127.0.0.1')
    t.equal(await new SocketOwners().uid(peerOf(far)), uid)
  },
)

void t.test('so is one over IPv6', { skip: skipIpv6 }, async (t) => {
  const { far } = await pair(t, '::1', '::1')
  t.equal(await new SocketOwners().uid(peerOf(far)), uid)
})

void t.test('so is one over IPv4 to a listener that speaks both', { skip: skipIpv6 }, async (t) => {
  const { far } = await pair(t, '::', '127.0.0.1')
  t.equal(far.remoteAddress, '::ffff:127.0.0.1')
  t.equal(await new SocketOwners().uid(peerOf(far)), uid)
})

void t.test(
  'so is one of an IPv6 socket that was given an IPv4 address',
  { skip: skipIpv6 },
  async (t) => {
    const { far } = await pair(t, '127.0.0.1', '::ffff:127.0.0.1')
    t.equal(await new SocketOwners().uid(peerOf(far)), uid)
  },
)

void t.test(
  'another user is told from root',
  { skip: skipTable || (uid === 0 ? false : 'takes root') },
  async (t) => {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const script = `require('node:net').connect(${port}, '127.0.0.1')`
    const child = spawn('node', ['-e', script], {
      uid: 65_534,
      gid: 65_534,
      stdio: 'ignore',
      cwd: '/',
    })
    t.teardown(() => {
      child.kill()
      server.close()
    })
    const [far] = (await once(server, 'connection')) as [Socket]
    far.on('error', () => undefined)
    t.equal(await new SocketOwners().uid(peerOf(far)), 65_534)
  },
)

void t.test(
  'a client that has closed its socket owns it no more: the kernel shows such sockets as root’s',
  { skip: skipTable },
  async (t) => {
    const { near, far } = await pair(t, '127.0.0.1', '127.0.0.1')
    const peer = peerOf(far)
    near.destroy()
    await once(far, 'end')
    t.equal(await new SocketOwners().uid(peer), undefined)
  },
)

const row = (local: string, remote: string, uid: number, inode: number, state = '01'): string =>
  `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000 ${String(uid).padStart(5)}        0 ${inode} 1 0000000000000000 20 4 30 10 -1`

const heading =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode'

const loopback: Peer = {
  address: '127.0.0.1',
  port: 40_000,
  localAddress: '127.0.0.1',
  localPort: 10_261,
}

void t.test('only the client’s end counts, not the hub’s own', async (t) => {
  const client = '0100007F:9C40'
  const hub = '0100007F:2815'
  const lines = [
    heading,
    row(hub, client, 0, 1),
    row(client, '0100007F:2816', 0, 2),
    row(client, hub, 1000, 3),
  ]
  const owners = new SocketOwners(async () => lines.join('\n'))
  t.equal(await owners.uid(loopback), 1000)
})

void t.test('a socket nobody holds has no owner, whatever uid stands beside it', async (t) => {
  for (const state of ['04', '05', '06', '0B']) {
    const lines = [heading, row('0100007F:9C40', '0100007F:2815', 0, 0, state)]
    t.equal(await new SocketOwners(async () => lines.join('\n')).uid(loopback), undefined, state)
  }
})

void t.test('a table that is empty, absent or holds other things names no owner', async (t) => {
  t.equal(await new SocketOwners(async () => '').uid(loopback), undefined)
  t.equal(
    await new SocketOwners(async () => 'x\n\n 0: 0100007F:9C40 0100007F:2815').uid(loopback),
    undefined,
  )
  const absent = new SocketOwners(async () => {
    throw Object.assign(new Error('no such family'), { code: 'ENOENT' })
  })
  t.equal(await absent.uid(loopback), undefined)
})

void t.test('who was not found, or could not be looked for, is looked for again', async (t) => {
  const tables = [
    '',
    new Error('EMFILE'),
    [heading, row('0100007F:9C40', '0100007F:2815', 7, 1)].join('\n'),
  ]
  const owners = new SocketOwners(async (family) => {
    const table = family === 'tcp' ? tables.shift() : ''
    if (table instanceof Error) throw table
    return table ?? ''
  })
  t.equal(await owners.uid(loopback), undefined)
  await t.rejects(owners.uid(loopback), { message: 'EMFILE' })
  t.equal(await owners.uid(loopback), 7)
  t.equal(await owners.uid(loopback), 7, 'and who was found is not')
})

void t.test('the table is read once a connection', async (t) => {
  let reads = 0
  const owners = new SocketOwners(async () => {
    reads++
    return [heading, row('0100007F:9C40', '0100007F:2815', 7, 1)].join('\n')
  })
  t.strictSame(await Promise.all([owners.uid(loopback), owners.uid(loopback)]), [7, 7])
  t.equal(await owners.uid(loopback), 7)
  t.equal(reads, 1)
  await owners.uid({ ...loopback })
  t.equal(reads, 2, 'another connection may be another user, though its numbers are the same')
})
