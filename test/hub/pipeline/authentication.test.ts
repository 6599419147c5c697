import { once } from 'node:events'
import { connect } from 'node:http2'
import t from 'tap'
import { StatusError } from '../../../src/api/kube/status.ts'
import { HostCheck, withProvenCaller } from '../../../src/hub/pipeline/authentication.ts'
import { claimOf, emptyReply, exchangeOf } from '../../kit/exchange.ts'
import { tokenHolder } from '../../../src/api/request/identity.ts'
import { limits } from '../../../src/http/server/limits.ts'
import { podsOfNode, startCloud } from '../../kit/cloud.ts'
import { startTestHub } from '../../kit/hub.ts'
import { openStream } from '../../kit/http2.ts'

const hosts = new HostCheck(new Set(['edge-1', '169.254.2.1']))

/** The code a request with these fields is answered with, at the address where it came in. */
async function code(headers: Record<string, string>, localAddress = '127.0.0.1'): Promise<number> {
  const exchange = exchangeOf('/version', { headers })
  try {
    const incoming = { ...exchange, peer: { ...exchange.peer, localAddress } }
    hosts.check(incoming)
    return 200
  } catch (error) {
    return error instanceof StatusError ? error.status.code : -1
  }
}

void t.test(
  'on loopback only loopback’s names and the hub’s own are accepted as Host',
  async (t) => {
    const own = [
      '127.0.0.1:10261',
      'localhost',
      'LOCALHOST:1',
      '[::1]:10261',
      '127.1.2.3',
      'Edge-1:80',
      '169.254.2.1',
    ]
    for (const Host of own) t.equal(await code({ Host }), 200, Host)
    t.equal(await code({}), 200, 'HTTP/1.0 has no Host')
    for (const Host of [
      'evil.example',
      '192.0.2.1:10261',
      '127.0.0.1.evil.example',
      'localhost.evil.example',
    ]) {
      t.equal(await code({ Host }), 403, Host)
    }
    t.equal(await code({ Host: 'evil.example' }, '::1'), 403)
    t.equal(await code({ Host: 'evil.example' }, '::ffff:127.0.0.1'), 403)
  },
)

void t.test('no request of a web page is served on loopback, not even of this host', async (t) => {
  t.equal(await code({ Host: 'localhost', Origin: 'http://localhost' }), 403)
  t.equal(await code({ Host: 'localhost', Origin: 'null' }), 403)
})

void t.test('beyond loopback any Host is accepted', async (t) => {
  t.equal(await code({ Host: 'hub.example' }, '192.0.2.7'), 200)
})

void t.test('a Host that was accepted once makes no other acceptable', async (t) => {
  t.equal(await code({ Host: 'hub.example' }, '192.0.2.7'), 200)
  t.equal(await code({ Host: 'hub.example' }), 403, 'the same name on loopback')
  t.equal(await code({}), 200)
  t.equal(await code({ Host: 'undefined' }), 403)
  for (let i = 0; i < 2; i++) t.equal(await code({ Host: 'edge-1' }), 200)
  t.equal(await code({ Host: 'edge-1', Origin: 'http://edge-1' }), 403)
  for (let i = 0; i < 100; i++) t.equal(await code({ Host: `127.0.0.1:${i + 1}` }), 200)
})

void t.test('the listener learns of a proven caller before the request goes on', async (t) => {
  const heard: boolean[] = []
  const onProven = (isNode: boolean): void => void heard.push(isNode)
  const exchange = { ...exchangeOf('/api/v1/pods'), onProven }
  await withProvenCaller(async () => {
    t.strictSame(heard, [true])
    return emptyReply
  })(exchange)
  t.strictSame(heard, [true])
})

void t.test('the listener learns of a token with the 101 that proves it', async (t) => {
  const heard: boolean[] = []
  let holds = false
  const identity = tokenHolder('hash')
  const claim = claimOf({ holds: () => holds, identity: () => identity })
  const answered = Promise.withResolvers<number>()
  await withProvenCaller(async () => ({
    kind: 'upgrade',
    from: 'cloud',
    take: () => undefined,
    finalStatus: answered.promise,
  }))({
    ...exchangeOf('/exec', { upgrade: true }),
    identity,
    claim,
    onProven: (isNode) => heard.push(isNode),
  })
  holds = true
  t.strictSame(heard, [])
  answered.resolve(101)
  await answered.promise
  t.strictSame(heard, [false])
})

void t.test(
  'over HTTP/2 a token that the cloud accepts opens a connection, a refused one closes it',
  async (t) => {
    const cloud = await startCloud(t, { tls: true })
    const hub = await startTestHub(t, { upstreams: [cloud] })
    await hub.online()
    const asked = (token: string) => {
      const session = connect(hub.secureUrl, { ca: hub.ca })
      t.teardown(() => session.destroy())
      const stream = openStream(session, { ':path': podsOfNode, authorization: `Bearer ${token}` })
      return { session, answered: stream.whole() }
    }
    const good = asked(cloud.sandbox.token('reader'))
    await once(good.session, 'remoteSettings')
    t.equal(good.session.remoteSettings.maxConcurrentStreams, limits.unprovenStreams)
    const more = once(good.session, 'remoteSettings')
    t.equal((await good.answered).status, 200)
    await more
    t.equal(good.session.remoteSettings.maxConcurrentStreams, limits.streams)
    const bad = asked('of-nobody')
    const leaving = once(bad.session, 'goaway')
    t.equal((await bad.answered).status, 401)
    await leaving
  },
)
