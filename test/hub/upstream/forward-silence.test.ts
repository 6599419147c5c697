import t from 'tap'
import { answerOf } from '../../kit/wire/upstream.ts'
import { get, oneUpstream, post, relay, twoUpstreams } from './relay.ts'

void t.test(
  'a silent upstream is probed after a second, and only a failed probe moves a get on',
  async (t) => {
    const { first, second, hub } = await twoUpstreams(t)
    const slow = await relay(t, [first.origin, second.origin])
    hub.probes.set(first.origin, 'bad')
    const before = slow.probes.asked.length
    const client = await hub.ask(get)
    const silent = await first.asked()
    const patient = await slow.ask(get)
    const late = await first.asked()

    const wire = await second.asked()
    wire.write(answerOf('from the other'))
    t.equal((await client.answer()).body, 'from the other')
    await silent.ended

    await slow.probes.sent(before + 1)
    late.write(answerOf('late'))
    t.equal((await patient.answer()).body, 'late')
    t.equal(second.connections.length, 1)
  },
)

void t.test('an upstream that freezes within a short answer has not given it', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  hub.probes.set(first.origin, 'bad')
  const client = await hub.ask(get)
  const frozen = await first.asked()
  frozen.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc')
  const wire = await second.asked()
  wire.write(answerOf('whole'))
  t.match(await client.answer(), { status: 200, body: 'whole' })
  await frozen.ended
})

void t.test('an upstream that one request finds silent is left by all that wait', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  hub.probes.set(first.origin, 'silent')
  const before = hub.probes.asked.length
  await hub.ask(get)
  await first.asked()
  await hub.probes.sent(before + 1)
  const late = await hub.ask(get)
  await first.asked()
  hub.probes.set(first.origin, 'bad')
  // By its own probe it would be left where it is.
  hub.probes.set(first.origin, 'good')
  for (let i = 0; i < 2; i++) {
    const wire = await second.asked()
    wire.write(answerOf('from the other'))
  }
  t.equal((await late.answer()).body, 'from the other')
})

void t.test('requests that come while an upstream is silent go to another first', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  const [upstream] = hub.cloud.upstreams
  hub.probes.set(first.origin, 'silent')
  await hub.ask(get)
  await second.asked()
  t.match(upstream, { health: 'healthy', availability: 'unresponsive' })
  await hub.ask(get)
  await second.asked()
  t.equal(first.connections.length, 1)
  hub.probes.set(first.origin, 'good')
  await upstream?.probe()
  await hub.ask(get)
  await first.asked()
})

void t.test('a long silence is probed again and again', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  const before = hub.probes.asked.length
  await hub.ask(get)
  await first.asked()
  await hub.probes.sent(before + 1)
  hub.probes.set(first.origin, 'bad')
  await second.asked()
  t.equal(hub.probes.asked[before + 1], first.origin)
})

void t.test('a lone silent upstream is given up after one silence', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  hub.probes.set(upstream.origin, 'silent')
  const answer = await (await hub.ask(get)).answer()
  t.match(answer, { status: 503, body: 'sent: true' })
  t.equal(upstream.connections.length, 1)
})

void t.test('a silent upstream keeps what may have been done already', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  hub.probes.set(first.origin, 'bad')
  const before = hub.probes.asked.length
  const client = await hub.ask(post)
  const wire = await first.asked()
  await hub.probes.sent(before + 1)
  wire.write(answerOf('done'))
  t.equal((await client.answer()).body, 'done')
  t.equal(second.connections.length, 0)
})
