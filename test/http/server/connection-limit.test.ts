import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import t from 'tap'
import type { Incoming, WireReply } from '../../../src/http/exchange/exchange.ts'
import { nodeIdentity, tokenHolder, type Identity } from '../../../src/api/request/identity.ts'
import { get, provenAs, wholeReply, startListener, type TestListener } from '../../kit/listener.ts'
import { Wire } from '../../kit/wire/wire.ts'
import { until } from '../../kit/until.ts'

void t.test('when there is no room, the connection idle for longest makes it', async (t) => {
  const { dial, cuts } = await startListener(
    t,
    provenAs(async () => wholeReply('ok')),
    {
      maxConnections: 2,
    },
  )
  const [first, second] = [await dial(), await dial()]
  for (const client of [second, first]) await client.write(get()).answer()
  const third = await dial()
  t.equal((await third.write(get()).answer()).body, 'ok')
  t.equal(await second.rest(), '', 'its request is the older one')
  t.equal((await first.write(get()).answer()).body, 'ok')
  t.strictSame(cuts, ['full'])
})

const forever = (): Promise<never> => new Promise(() => undefined)
const holder = (name: string): Identity => tokenHolder(name)

/**
 * A handler that takes the caller's identity from the path, and never answers `/hold` and below.
 */
const byPath = async (incoming: Incoming): Promise<WireReply> => {
  const [, name = '', what] = incoming.url.split('/')
  if (name !== '') incoming.onProven?.(name === 'node' ? nodeIdentity : holder(name))
  return what === 'hold' ? forever() : wholeReply('ok')
}

void t.test('connections on which no caller is proven make room first, the oldest', async (t) => {
  const { dial } = await startListener(t, byPath, { maxConnections: 3 })
  const known = await dial()
  await known.write(get('/someone')).answer()
  const strangers = [await dial(), await dial()]
  await strangers[1]?.write(get()).answer()
  strangers.push(await dial(), await dial())
  t.equal(await strangers[0]?.rest(), '')
  t.equal(await strangers[1]?.rest(), '', 'an answer proves nothing')
  t.equal((await known.write(get('/someone')).answer()).body, 'ok')
  t.equal((await strangers[3]?.write(get()).answer())?.body, 'ok')
})

const refused = { ...wholeReply('no'), status: 401 } as WireReply

void t.test('a revoked proof makes a connection unproven again', async (t) => {
  let isRevoked = false
  const { dial, cuts } = await startListener(
    t,
    async (incoming) => {
      if (incoming.url === '/') return refused
      incoming.onProven?.(holder(incoming.url))
      if (incoming.url !== '/revoked' || !isRevoked) return wholeReply('ok')
      incoming.onDisproven?.()
      return refused
    },
    { maxConnections: 4 },
  )
  const clients = {
    former: await dial(),
    revoked: await dial(),
    changed: await dial(),
    regained: await dial(),
  }
  const { former, revoked, changed, regained } = clients
  for (const client of [former, changed, regained]) await client.write(get('/token')).answer()
  await revoked.write(get('/revoked')).answer()
  isRevoked = true
  t.equal((await regained.write(get()).answer()).status, 401)
  t.equal((await regained.write(get('/token')).answer()).status, 200)
  t.equal((await changed.write(get()).answer()).status, 401)
  t.equal((await revoked.write(get('/revoked')).answer()).status, 401)
  const more = [await dial(), await dial()]
  t.equal(await changed.rest(), '', 'the first that was put back')
  t.equal(await revoked.rest(), '', 'then the other')
  for (const client of [former, regained])
    t.equal((await client.write(get('/token')).answer()).body, 'ok')
  t.strictSame(cuts, ['full', 'full'])
  for (const client of more) client.socket.destroy()
})

void t.test('a refusal takes nothing from a connection of the node', async (t) => {
  const { dial } = await startListener(
    t,
    async (incoming) => (incoming.url === '/node' ? byPath(incoming) : refused),
    { maxConnections: 2 },
  )
  const kubelet = await dial()
  await kubelet.write(get('/node')).answer()
  t.equal((await kubelet.write(get()).answer()).status, 401)
  const stranger = await dial()
  await stranger.write(get()).answer()
  await dial()
  t.equal(await stranger.rest(), '', 'which came later, and makes room')
  t.equal((await kubelet.write(get('/node')).answer()).body, 'ok')
})

/** Dials, requests what never ends, and waits until the listener has seen it. */
async function served({ dial, seen }: TestListener, path: string): Promise<Wire> {
  const before = seen.length
  const client = (await dial()).write(get(path))
  await until(`${path} to be served`, () => seen.length > before)
  return client
}

void t.test('where the node has every connection served, a further one is closed', async (t) => {
  const listening = await startListener(t, byPath, { maxConnections: 2 })
  for (let i = 0; i < 2; i++) await served(listening, '/node/hold')
  t.equal(await (await listening.dial()).rest(), '')
  t.notOk(listening.seen.some(({ signal }) => signal.aborted))
})

void t.test('the caller with the most connections makes room for others', async (t) => {
  const listening = await startListener(t, byPath, { maxConnections: 4 })
  const modest = await served(listening, '/modest/hold')
  const greedy: Wire[] = []
  for (let i = 0; i < 3; i++) greedy.push(await served(listening, '/greedy/hold'))
  const node = await served(listening, '/node/hold')
  t.equal(await greedy[2]?.rest(), '', 'the latest of the greedy one')
  await served(listening, '/third/hold')
  t.equal(await greedy[1]?.rest(), '')
  t.strictSame(
    listening.seen.map(({ url, signal }) => [url, signal.aborted]),
    [
      ['/modest/hold', false],
      ['/greedy/hold', false],
      ['/greedy/hold', true],
      ['/greedy/hold', true],
      ['/node/hold', false],
      ['/third/hold', false],
    ],
  )
  for (const client of [modest, node]) client.socket.destroy()
})

void t.test('callers found to be one account are one caller', async (t) => {
  const listening = await startListener(t, byPath, { maxConnections: 3 })
  const modest = await listening.dial()
  await modest.write(get('/modest')).answer()
  const greedy: Wire[] = []
  for (const token of ['/one', '/other']) {
    const client = await listening.dial()
    await client.write(get(token)).answer()
    await client.write(get('/account')).answer()
    greedy.push(client)
  }
  await served(listening, '/third/hold')
  t.equal(await greedy[0]?.rest(), '', 'which has more connections than the others')
  t.equal((await modest.write(get('/modest')).answer()).body, 'ok')
})

void t.test('most connections are kept for proven callers', async (t) => {
  const { dial, cuts } = await startListener(t, byPath, { maxConnections: 16, mostUnproven: 2 })
  const known: Wire[] = []
  for (let i = 0; i < 3; i++) {
    const client = await dial()
    await client.write(get('/someone')).answer()
    known.push(client)
  }
  const strangers = [await dial(), await dial(), await dial()]
  for (const client of strangers.slice(1)) await client.write(get()).answer()
  t.equal(await strangers[0]?.rest(), '', 'the oldest on which none is proven')
  for (const client of known)
    t.equal((await client.write(get('/someone')).answer()).body, 'ok', 'is closed alone')
  t.strictSame(cuts, ['full'])
})

void t.test('connections whose proof is withdrawn count as unproven', async (t) => {
  const { dial, cuts } = await startListener(
    t,
    async (incoming) => {
      incoming.onProven?.(holder('someone'))
      if (incoming.url !== '/revoked') return wholeReply('ok')
      incoming.onDisproven?.()
      return refused
    },
    { maxConnections: 16, mostUnproven: 2 },
  )
  const clients = [await dial(), await dial()]
  for (const client of clients) await client.write(get()).answer()
  clients.push(await dial())
  await clients[2]?.write(get()).answer()
  for (const client of clients) await client.write(get('/revoked')).answer()
  t.equal(await clients[0]?.rest(), '')
  t.strictSame(cuts, ['full'])
})

const [ownAddress] = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .filter(({ internal, family }) => !internal && family === 'IPv4')
  .map(({ address }) => address)

void t.test(
  'of the addresses at which no caller is proven the one with most connections makes room',
  { skip: ownAddress === undefined && 'this host has no address but loopback' },
  async (t) => {
    const { listener, seen } = await startListener(t, forever, {
      at: [{ host: '0.0.0.0', port: 0 }],
      maxConnections: 4,
    })
    const dialFrom = (localAddress: string, host = '127.0.0.1'): Wire => {
      const socket = connect({ port: listener.port, host, localAddress })
      t.teardown(() => socket.destroy())
      return new Wire(socket)
    }
    const servedNext = async (client: Wire): Promise<Incoming | undefined> => {
      const before = seen.length
      client.write(get())
      await until('the next request', () => seen.length > before)
      return seen.at(-1)
    }
    const modest = await servedNext(dialFrom(ownAddress ?? '', ownAddress))
    const greedy = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'].map((a) =>
      dialFrom(a),
    )
    for (const client of greedy) await servedNext(client)
    t.equal(await greedy[0]?.rest(), '', 'loopback is one address')
    t.equal(await greedy[1]?.rest(), '')
    t.equal(modest?.signal.aborted, false, 'though it was the first')
  },
)
