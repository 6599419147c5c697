/**
 * A client that reaches a listener can be refused as often as it wants, and leave the refusals
 * unread: such connections were once held for two minutes each, until no other found room. Now they
 * are the first to be closed, and do not last.
 */
import { connect } from 'node:http2'
import t from 'tap'
import type { Incoming, WireReply } from '../../src/http/exchange/exchange.ts'
import { limits } from '../../src/http/server/limits.ts'
import { nodeIdentity } from '../../src/api/request/identity.ts'
import { podsOfNode, startCloud } from '../kit/cloud.ts'
import { startFlooded } from '../kit/flooding.ts'
import { startOnlineHub } from '../kit/hub.ts'
import { frame, get as getOver2 } from '../kit/http2-frames.ts'
import { openStream } from '../kit/http2.ts'
import {
  aborted,
  scriptedReply,
  get,
  provenAs,
  wholeReply,
  startListener,
} from '../kit/listener.ts'
import type { Wire } from '../kit/wire/wire.ts'
import { until } from '../kit/until.ts'

const refusal: WireReply = { ...wholeReply('Unauthorized'), status: 401 } as WireReply

/** The node is served, for ever where it watches; others are refused. */
const answered = async (incoming: Incoming): Promise<WireReply> => {
  if (!incoming.url.startsWith('/node')) return refusal
  incoming.onProven?.(nodeIdentity)
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

/** Takes an answer 4 KiB at a time. */
function take(client: Wire): void {
  if (client.socket.destroyed) return
  for (const stream of [0, 1]) client.write(frame(8, 0, stream, Buffer.from('00001000', 'hex')))
  setImmediate(() => take(client))
}

/** An answer that does not end, and of which a part waits at any time. */
const endless = (): WireReply =>
  scriptedReply((sink) => {
    let over = false
    const write = async (): Promise<void> => {
      while (!over) if (!sink.write(Buffer.alloc(1024))) await sink.drained()
    }
    void write()
    return () => {
      over = true
    }
  })

for (const isProven of [false, true]) {
  const kept = isProven ? 'keeps that of a proven caller' : 'keeps no other'
  void t.test(`taking some of an answer, and never all, ${kept}`, async (t) => {
    const seen: Incoming[] = []
    const handler = async (incoming: Incoming): Promise<WireReply> => {
      seen.push(incoming)
      return endless()
    }
    const { dial, cuts } = await startFlooded(t, isProven ? provenAs(handler) : handler, {
      stalledMs: 200,
    })
    const slow = (await dial()).write(getOver2(1))
    await until('the first request', () => seen.length >= 1)
    take(slow)
    // One that reads nothing at all is cut in either case: the time of the first is over by then.
    const still = await dial()
    still.write(getOver2(1))
    await until('the second request', () => seen.length >= 2)
    await aborted(seen[1]?.signal ?? AbortSignal.abort())
    t.equal(seen[0]?.signal.aborted, !isProven)
    // Taking by small frames may also spend the budget of records.
    t.ok(isProven ? cuts.length === 1 : cuts.length >= 2, cuts.join(', '))
    for (const client of [slow, still]) client.socket.destroy()
  })
}

void t.test(
  'consecutive refusals end a connection; a proven caller resets the count',
  async (t) => {
    const { dial } = await startListener(t, answered)
    const client = await dial()
    for (let i = 1; i < limits.refusals; i++) await client.write(get()).answer()
    t.equal((await client.write(get('/node')).answer()).status, 200)
    for (let i = 1; i < limits.refusals; i++) await client.write(get()).answer()
    const last = await client.write(get()).answer()
    t.equal(last.status, 401)
    t.match(last.fields.join(' '), 'Connection close')
    t.equal(await client.rest(), '')
  },
)

void t.test('malformed requests over HTTP/2 count as refusals, too', async (t) => {
  const { listener, ca } = await startFlooded(t, answered)
  const session = connect(`https://127.0.0.1:${listener.port}`, { ca })
  t.teardown(() => session.destroy())
  session.on('error', () => undefined)
  let refused = 0
  while (!session.closed && refused < 2 * limits.refusals) {
    const stream = session.request({ ':path': '/', ':authority': 'one', host: 'another' })
    stream.on('error', () => undefined)
    await new Promise((resolve) => stream.resume().once('close', resolve))
    refused++
    await new Promise(setImmediate)
  }
  t.ok(session.closed, `the connection goes on after ${refused}`)
})

void t.test('a revoked token keeps no connection that it once proved', async (t) => {
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
