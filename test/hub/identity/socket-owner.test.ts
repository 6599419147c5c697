import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import t from 'tap'
import { keepProcessAlive, turn } from '../../../src/base/clock.ts'
import type { Peer } from '../../../src/http/exchange/exchange.ts'
import { SocketOwners } from '../../../src/hub/identity/socket-owner.ts'
import { peerOf } from '../../../src/http/server/peer.ts'
import { startAs } from '../../kit/other-user.ts'
import { portOf } from '../../kit/wire/listening.ts'
import type { Teardown } from '../../kit/wire/wire.ts'

const table = existsSync('/proc/net/tcp')
const ipv6 =
  existsSync('/proc/net/if_inet6') && readFileSync('/proc/net/if_inet6', 'utf8').includes(' lo')
const skipTable = table ? false : 'there is no /proc/net/tcp here'
const skipIpv6 = table && ipv6 ? false : 'there is no IPv6 on loopback here'
const uid = process.getuid?.()

const owners = new SocketOwners()

/** Both ends of a connection from `host` to a listener on `listenOn`. */
async function pair(
  t: Teardown,
  listenOn: string,
  host: string,
): Promise<{ near: Socket; far: Socket }> {
  const server = createServer({ allowHalfOpen: true })
  const near = connect(await portOf(t, server, listenOn), host)
  const [far] = (await once(server, 'connection')) as [Socket]
  far.on('error', () => undefined).resume()
  t.teardown(() => {
    near.destroy()
    far.destroy()
  })
  return { near, far }
}

for (const [what, skip, listenOn, host] of [
  ['within the host', skipTable, '127.0.0.1', '127.0.0.1'],
  ['over IPv6', skipIpv6, '::1', '::1'],
  ['over IPv4 to a dual-stack listener', skipIpv6, '::', '127.0.0.1'],
  ['of an IPv6 socket with an IPv4 address', skipIpv6, '127.0.0.1', '::ffff:127.0.0.1'],
] as const)
  void t.test(`a connection is owned by the user that made it: ${what}`, { skip }, async (t) => {
    const { far } = await pair(t, listenOn, host)
    t.equal(await owners.uid(peerOf(far)), uid)
  })

void t.test(
  'another user is distinguished from root',
  { skip: skipTable || (uid === 0 ? false : 'takes root') },
  async (t) => {
    const server = createServer()
    const port = await portOf(t, server)
    const client = startAs(65_534, `require('node:net').connect(${port}, '127.0.0.1')`)
    t.teardown(() => client.process.kill())
    const [far] = (await Promise.race([once(server, 'connection'), client.failed])) as [Socket]
    far.on('error', () => undefined)
    t.equal(await owners.uid(peerOf(far)), 65_534)
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
    t.equal(await owners.uid(peer), undefined)
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
  inode: '4711',
}

const client = '0100007F:9C40'
const hub = '0100007F:2815'

/** The table of a kernel in which `uid` has connected to the hub. */
const connectedAs = (uid: number): string =>
  [heading, row(client, hub, uid, 1), row(hub, client, 0, 4711)].join('\n')

void t.test('only the client’s end counts, not the hub’s own', async (t) => {
  const lines = [
    heading,
    row(hub, client, 0, 1),
    row(client, '0100007F:2816', 0, 2),
    row(client, hub, 1000, 3),
  ]
  const owners = new SocketOwners(async () => lines.join('\n'))
  t.equal(await owners.uid(loopback), 1000)
})

void t.test('a socket without an inode has no owner, whatever uid its row has', async (t) => {
  for (const state of ['01', '04', '05', '06', '0B']) {
    const lines = [heading, row(client, hub, 0, 0, state), row(hub, client, 0, 4711)]
    t.equal(await new SocketOwners(async () => lines.join('\n')).uid(loopback), undefined, state)
  }
})

/** Readings of the table, one after the other; the last one stays. */
function readings(...tables: readonly string[]): SocketOwners {
  const left = [...tables]
  return new SocketOwners(async (family) =>
    family === 'tcp6' ? '' : ((left.length > 1 ? left.shift() : left[0]) ?? ''),
  )
}

void t.test(
  'root is found where the hub’s own end is established after its client’s',
  async (t) => {
    t.equal(await readings(connectedAs(0), connectedAs(0)).uid(loopback), 0)
    const { inode: _, ...unknown } = loopback
    t.equal(await readings(connectedAs(0)).uid(unknown), undefined, 'and has to be known')
  },
)

void t.test('root is found only where the second table shows its socket again', async (t) => {
  const own = row(hub, client, 0, 4711)
  const later: Readonly<Record<string, readonly string[]>> = {
    'it has closed': [own],
    'another has its ports': [row(client, hub, 0, 77), own],
    'it was orphaned while it was printed': [row(client, hub, 0, 0), own],
  }
  for (const [name, lines] of Object.entries(later)) {
    const owners = readings(connectedAs(0), [heading, ...lines].join('\n'))
    t.equal(await owners.uid(loopback), undefined, name)
  }
})

void t.test('a socket of root on the ports of a closed connection is not its client', async (t) => {
  const later: Readonly<Record<string, string>> = {
    'the hub’s end has gone': row(client, hub, 0, 1),
    'a new connection has the same ends': row(hub, client, 0, 4712),
    'it was not accepted yet': row(hub, client, 0, 0),
    'it is half-closed': row(hub, client, 0, 4711, '08'),
    'it has been reset': row(hub, client, 0, 4711, '07'),
    'its inode is another connection’s': row(hub, '0100007F:9C41', 0, 4711),
  }
  for (const [name, line] of Object.entries(later)) {
    const lines = [heading, row(client, hub, 0, 1), line]
    const owners = readings(connectedAs(0), lines.join('\n'))
    t.equal(await owners.uid(loopback), undefined, name)
  }
})

void t.test('the second table is begun when the first one is complete', async (t) => {
  const steps: string[] = []
  const owners = new SocketOwners(async () => {
    steps.push('begun')
    await turn()
    steps.push('complete')
    return connectedAs(0)
  })
  t.equal(await owners.uid(loopback), 0)
  t.strictSame(steps, ['begun', 'complete', 'begun', 'complete'])
})

void t.test('a program of root that is still connecting does not own a connection', async (t) => {
  const lines = [heading, row(client, hub, 0, 9, '02'), row(hub, client, 0, 4711)]
  t.equal(await readings(lines.join('\n')).uid(loopback), undefined)
  lines.push(row(client, hub, 1000, 1))
  t.equal(await readings(lines.join('\n')).uid(loopback), 1000, 'another user’s does')
})

void t.test('of two sockets with the same ends the newer one, listed first, counts', async (t) => {
  const newer = (first: number, second: number): string =>
    [
      heading,
      row(client, hub, first, 1),
      row(client, hub, second, 2),
      row(hub, client, 0, 4711),
    ].join('\n')
  t.equal(await readings(newer(0, 1000)).uid(loopback), 0)
  t.equal(await readings(newer(1000, 0)).uid(loopback), 1000)
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

void t.test('a lookup that found no owner, or failed, is repeated', async (t) => {
  using _alive = keepProcessAlive()
  const tables = ['', new Error('EMFILE'), [heading, row(client, hub, 7, 1)].join('\n')]
  const owners = new SocketOwners(async (family) => {
    const table = family === 'tcp' ? tables.shift() : ''
    if (table instanceof Error) throw table
    return table ?? ''
  })
  t.equal(await owners.uid(loopback), undefined)
  await t.rejects(async () => owners.uid(loopback), { message: 'EMFILE' })
  t.equal(await owners.uid(loopback), 7)
  t.equal(await owners.uid(loopback), 7, 'and who was found is not')
})

void t.test('a disconnected client costs one reading of one table', async (t) => {
  const own = row(hub, client, 0, 4711)
  const tables = {
    'the hub’s own end has gone, too': [heading],
    'it is half-closed': [heading, row(hub, client, 0, 4711, '08')],
    'it is another connection’s': [heading, row(hub, client, 0, 4712)],
    'it is established, so that the client may have an IPv6 socket': [heading, own],
  }
  for (const [name, lines] of Object.entries(tables)) {
    const read: string[] = []
    const owners = new SocketOwners(async (family) => {
      read.push(family)
      return family === 'tcp' ? lines.join('\n') : ''
    })
    t.equal(await owners.uid(loopback), undefined)
    t.strictSame(read, lines.includes(own) ? ['tcp', 'tcp6'] : ['tcp'], name)
  }
})

void t.test('the table is read once per connection', async (t) => {
  let reads = 0
  const owners = new SocketOwners(async () => {
    reads++
    return [heading, row(client, hub, 7, 1)].join('\n')
  })
  t.strictSame(await Promise.all([owners.uid(loopback), owners.uid(loopback)]), [7, 7])
  t.equal(await owners.uid(loopback), 7)
  t.equal(reads, 1)
  await owners.uid({ ...loopback })
  t.equal(reads, 2, 'another connection may be another user, though its numbers are the same')
})
