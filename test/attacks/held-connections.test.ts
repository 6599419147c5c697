/**
 * A client that reaches a listener can be refused as often as it wants, and leave the refusals
 * unread: such connections were once held for two minutes each, until no other found room. Now they
 * are the first to be closed, and do not last.
 */
import { connect } from 'node:http2'
import t from 'tap'
import type { Incoming, WireReply } from '../../src/http/exchange/exchange.ts'
import { podsOfNode, startCloud } from '../kit/cloud.ts'
import { startFlooded } from '../kit/flooding.ts'
import { startOnlineHub } from '../kit/hub.ts'
import { get as getOver2 } from '../kit/http2-frames.ts'
import { openStream } from '../kit/http2.ts'
import { scriptedReply, get, wholeReply, startListener } from '../kit/listener.ts'
import type { Wire } from '../kit/wire/wire.ts'
import { until } from '../kit/until.ts'

const refusal: WireReply = { ...wholeReply('Unauthorized'), status: 401 } as WireReply

/** The node is served, for ever where it watches; others are refused. */
const answered = async (incoming: Incoming): Promise<WireReply> => {
  if (!incoming.url.startsWith('/node')) return refusal
  incoming.onProven?.(true)
  return incoming.url === '/node/watch'
    ? scriptedReply((sink) => void sink.write(Buffer.from('event')))
    : wholeReply('ok')
}

void t.test('unread refusals keep no connection from the node', async (t) => {
  const seen: Incoming[] = []
  const { listener, dial, ca } = await startFlooded(
    t,
    (incoming) => {
      seen.push(incoming)
      return answered(incoming)
    },
    { maxConnections: 32 },
  )
  const hold = async (): Promise<void> => {
    const before = seen.length
    const client = (await dial()).write(getOver2(1))
    await until('a connection to be served or closed', () => {
      return seen.length > before || client.socket.destroyed
    })
  }
  for (let i = 0; i < 50; i++) await hold()
  const session = connect(`https://127.0.0.1:${listener.port}`, { ca })
  t.teardown(() => session.destroy())
  const watch = session.request({ ':path': '/node/watch' })
  await new Promise((resolve) => watch.once('data', resolve))
  for (let i = 0; i < 50; i++) await hold()
  const watched = seen.find(({ url }) => url === '/node/watch')
  t.equal(watched?.signal.aborted, false)
  const refused = seen.filter(({ url }) => url !== '/node/watch')
  t.equal(refused.length, 100, 'each found room, and lost it to the next')
  const held = refused.filter(({ signal }) => !signal.aborted)
  t.ok(held.length < 32, `${held.length} are held`)
})

void t.test('unproven connections make room for each other over HTTP/1.1, too', async (t) => {
  const { dial, seen } = await startListener(
    t,
    async (incoming) =>
      incoming.url.startsWith('/node') ? answered(incoming) : new Promise(() => undefined),
    { maxConnections: 16 },
  )
  const watch = (await dial()).write(get('/node/watch'))
  await watch.until('event')
  const held: Wire[] = []
  for (let i = 0; i < 200; i++) {
    const before = seen.length
    held.push((await dial()).write(get()))
    await until('the next request', () => seen.length > before)
  }
  t.equal((await (await dial()).write(get('/node')).answer()).body, 'ok')
  t.equal(seen[0]?.signal.aborted, false)
  await held[0]?.ended
})

void t.test('a revoked token keeps no HTTP/2 connection that it once proved', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  const hub = await startOnlineHub(t, { upstreams: [cloud] })
  const token = cloud.sandbox.token('reader')
  const session = connect(hub.secureUrl, { ca: hub.ca })
  t.teardown(() => session.destroy())
  const read = async (): Promise<number> => {
    const fields = { ':path': podsOfNode, authorization: `Bearer ${token}` }
    return (await openStream(session, fields).whole()).status
  }
  t.equal(await read(), 200)
  t.equal(await read(), 200)
  cloud.sandbox.revoke(token)
  let isLeft = false
  session.once('goaway', () => (isLeft = true))
  t.equal(await read(), 401)
  // What the hub sent before arrives before the answer to a ping.
  await new Promise<void>((resolve) => {
    if (session.destroyed) resolve()
    else session.ping(() => resolve())
  })
  t.ok(isLeft)
})
