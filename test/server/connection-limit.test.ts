import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import t from 'tap'
import type { Incoming } from '../../src/exchange/exchange.ts'
import { get, said, startListener } from '../kit/listener.ts'
import { Wire } from '../kit/wire/wire.ts'

void t.test('when there is no room, the connection idle for longest makes it', async (t) => {
  const { dial, cuts } = await startListener(t, async () => said('ok'), { maxConnections: 2 })
  const [first, second] = [await dial(), await dial()]
  for (const client of [second, first]) await client.write(get()).answer()
  const third = await dial()
  t.equal((await third.write(get()).answer()).body, 'ok')
  t.equal(await second.rest(), '', 'it was asked last by its other end')
  t.equal((await first.write(get()).answer()).body, 'ok')
  t.strictSame(cuts, ['full'])
})

void t.test('connections that ask for nothing make room before those that have', async (t) => {
  const { dial } = await startListener(t, async () => said('ok'), { maxConnections: 3 })
  const known = await dial()
  await known.write(get()).answer()
  const strangers = [await dial(), await dial(), await dial(), await dial()]
  t.equal(await strangers[0]?.rest(), '')
  t.equal(await strangers[1]?.rest(), '')
  t.equal((await known.write(get()).answer()).body, 'ok')
  t.equal((await strangers[3]?.write(get()).answer())?.body, 'ok')
})

void t.test('where every connection is being served, a further one is closed', async (t) => {
  const { dial, seen } = await startListener(t, () => new Promise(() => undefined), {
    maxConnections: 2,
  })
  const clients = [await dial(), await dial()]
  for (const client of clients) client.write(get())
  while (seen.length < 2) await new Promise(setImmediate)
  t.equal(await (await dial()).rest(), '')
  t.notOk(seen.some(({ signal }) => signal.aborted))
})

const [ownAddress] = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .filter(({ internal, family }) => !internal && family === 'IPv4')
  .map(({ address }) => address)

void t.test(
  'an end that has every connection served makes room for another, and not by calling from many addresses',
  { skip: ownAddress === undefined && 'this host has no address but loopback' },
  async (t) => {
    const { listener, seen } = await startListener(t, () => new Promise(() => undefined), {
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
      while (seen.length === before) await new Promise(setImmediate)
      return seen.at(-1)
    }
    const greedy = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4'].map((a) => dialFrom(a))
    for (const client of greedy) await servedNext(client)
    const served = await servedNext(dialFrom(ownAddress ?? '', ownAddress))
    t.equal(await greedy[3]?.rest(), '', 'the latest of the greedy end')
    t.equal(await dialFrom('127.0.0.5').rest(), '', 'which gets it back from nobody')
    t.equal(served?.signal.aborted, false)
  },
)
