import { once } from 'node:events'
import { connect } from 'node:http2'
import t from 'tap'
import { withProvenCaller } from '../../../src/hub/pipeline/proven-caller.ts'
import {
  nodeIdentity,
  serviceAccount,
  tokenHolder,
  type Identity,
} from '../../../src/api/request/identity.ts'
import { limits } from '../../../src/http/server/limits.ts'
import { podsOfNode, startCloud } from '../../kit/cloud.ts'
import { claimOf, emptyReply, exchangeOf } from '../../kit/exchange.ts'
import { startTestHub } from '../../kit/hub.ts'
import { openStream } from '../../kit/http2.ts'

void t.test('the listener hears who is proven before the request goes on', async (t) => {
  const heard: Identity[] = []
  const exchange = { ...exchangeOf('/api/v1/pods'), onProven: (who: Identity) => heard.push(who) }
  await withProvenCaller(async () => {
    t.strictSame(heard, [nodeIdentity])
    return emptyReply
  })(exchange)
  t.strictSame(heard, [nodeIdentity])
})

void t.test(
  'a token that an answer proves is heard of with that answer, any other never',
  async (t) => {
    for (const accepted of [true, false]) {
      const heard: Identity[] = []
      let holds = false
      const identity = tokenHolder('hash')
      const claim = claimOf({ holds: () => holds, identity: () => identity })
      const exchange = { ...exchangeOf('/api/v1/pods'), identity, claim }
      await withProvenCaller(async () => {
        t.strictSame(heard, [])
        holds = accepted
        return emptyReply
      })({ ...exchange, onProven: (who) => heard.push(who) })
      t.strictSame(heard, accepted ? [identity] : [])
    }
  },
)

void t.test('a token that an upgrade proves is heard of with its 101', async (t) => {
  const heard: Identity[] = []
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
    onProven: (who) => heard.push(who),
  })
  holds = true
  t.strictSame(heard, [])
  answered.resolve(101)
  await answered.promise
  t.strictSame(heard, [identity])
})

void t.test('the listener hears of a proof that an answer takes back', async (t) => {
  for (const isRevoked of [true, false]) {
    const heard: string[] = []
    let holds = true
    const claim = claimOf({ holds: () => holds })
    await withProvenCaller(async () => {
      t.strictSame(heard, ['proven'])
      holds = !isRevoked
      return emptyReply
    })({
      ...exchangeOf('/api/v1/pods'),
      claim,
      onProven: () => heard.push('proven'),
      onDisproven: () => heard.push('disproven'),
    })
    t.strictSame(heard, isRevoked ? ['proven', 'disproven'] : ['proven'])
  }
})

void t.test(
  'of a token that an answer proves to be an account’s the account is heard',
  async (t) => {
    const heard: Identity[] = []
    const account = serviceAccount({ namespace: 'default', name: 'reader', uid: 'u-1' })
    let isConfirmed = false
    const identity = tokenHolder('hash')
    const claim = claimOf({
      holds: () => isConfirmed,
      identity: () => (isConfirmed ? account : identity),
    })
    await withProvenCaller(async () => {
      isConfirmed = true
      return emptyReply
    })({ ...exchangeOf('/api/v1/pods'), identity, claim, onProven: (who) => heard.push(who) })
    t.strictSame(heard, [account])
  },
)

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
