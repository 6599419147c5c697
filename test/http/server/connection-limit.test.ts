import t from 'tap'
import type { Incoming, WireReply } from '../../../src/http/exchange/exchange.ts'
import { get, provenAs, wholeReply, startListener, type TestListener } from '../../kit/listener.ts'
import type { Wire } from '../../kit/wire/wire.ts'
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

/**
 * A handler that takes the caller's identity from the path, and never answers `/hold` and below.
 */
const byPath = async (incoming: Incoming): Promise<WireReply> => {
  const [, name = '', what] = incoming.url.split('/')
  if (name !== '') incoming.onProven?.(name === 'node')
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

void t.test('of busy callers the one whose request began last makes room', async (t) => {
  const listening = await startListener(t, byPath, { maxConnections: 2 })
  const first = await served(listening, '/someone/hold')
  const last = await served(listening, '/another/hold')
  const node = await served(listening, '/node/hold')
  t.equal(await last.rest(), '')
  t.strictSame(
    listening.seen.map(({ url, signal }) => [url, signal.aborted]),
    [
      ['/someone/hold', false],
      ['/another/hold', true],
      ['/node/hold', false],
    ],
  )
  for (const client of [first, node]) client.socket.destroy()
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
