import t from 'tap'
import { answerOf, rawUpstream } from '../../kit/wire/upstream.ts'
import { get, relay, twoUpstreams } from './relay.ts'

const watch = 'GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: hub\r\n\r\n'

void t.test('F14: connections to an upstream that failed are closed, idle ones too', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  const client = await hub.ask(get)
  const idle = await first.asked()
  idle.write(answerOf('one'))
  t.equal((await client.answer()).body, 'one')
  const watching = await hub.ask(watch)
  await idle.head()
  idle.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
  await watching.head()
  client.write(get)
  const other = await first.asked()
  other.write(answerOf('two'))
  t.equal((await client.answer()).body, 'two')
  hub.probes.set(first.origin, 'bad')
  const [upstream] = hub.cloud.upstreams
  await upstream?.probe()
  await upstream?.probe()
  await Promise.all(first.connections.map((wire) => wire.ended))
  client.write(get)
  const elsewhere = await second.asked()
  elsewhere.write(answerOf('three'))
  t.equal((await client.answer()).body, 'three')
})

void t.test(
  'F14: watches at an upstream that is removed end cleanly, and its connections are closed',
  async (t) => {
    const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
    const hub = await relay(t, [first.origin])
    const client = await hub.ask(watch)
    const wire = await first.asked()
    wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n')
    await client.head()
    t.equal(await client.chunk(), '{}')
    hub.cloud.replace([second.origin])
    t.equal(await client.chunk(), '', 'the end of the watch, and not of the connection')
    await client.take(2)
    await wire.ended
    await hub.cloud.anyAnswers()
    client.write(watch)
    await second.asked()
    t.equal(first.connections.length, 1)
  },
)

void t.test('F14: what is under way elsewhere is not touched by it', async (t) => {
  const { first, hub } = await twoUpstreams(t)
  const client = await hub.ask(watch)
  const wire = await first.asked()
  wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
  await client.head()
  hub.cloud.replace([first.origin])
  wire.write('2\r\n{}\r\n')
  t.equal(await client.chunk(), '{}')
})
