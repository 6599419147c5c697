import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import { obtainedFiles } from '../../src/config/root-dir.ts'
import { nodeName, podsOfNode } from '../kit/cloud.ts'
import { goOnline, goOffline, startTestHub, type TestHub } from '../kit/hub.ts'
import { joinToken, startJoinable, type JoinableCloud } from '../kit/joinable.ts'
import { requestAs } from '../kit/other-user.ts'
import { until } from '../kit/until.ts'

t.setTimeout(300_000)

const start = (t: Test, { cloud, flags }: JoinableCloud): Promise<TestHub> =>
  startTestHub(t, { upstreams: [], flags: [`--server-addr=${cloud.url}`, ...flags] })

const readyz = async (hub: TestHub) => {
  const { status, body } = await hub.ops.get('/readyz?verbose')
  return { status, text: body.toString() }
}

const [, secret = ''] = joinToken.split('.')

void t.test(
  'a hub with nothing but a token gets a certificate, and answers its node with it',
  async (t) => {
    const joinable = await startJoinable(t)
    const { cloud } = joinable
    cloud.addPods('a')
    joinable.verdict = 'wait'
    const hub = await start(t, joinable)
    await hub.logged('the hub has no client certificate yet')
    await hub.online()
    const early = await hub.as('kubelet').get(podsOfNode)
    t.equal(early.status, 503, 'nothing is sent in the name of the node')
    t.strictSame(
      cloud.sandbox.requests.filter(({ path }) => path.endsWith('/pods')),
      [],
    )
    const unready = await readyz(hub)
    t.equal(unready.status, 503)
    t.match(unready.text, /^\[-\]certificate failed: the hub has no client certificate yet/m)
    const reader = hub.as('reader', { token: cloud.sandbox.token('reader') })
    t.equal((await reader.get(podsOfNode)).status, 200, 'who has a token is passed on')

    joinable.verdict = 'sign'
    await hub.logged('the hub has obtained a client certificate')
    await hub.logged('an API server is now healthy')
    t.strictSame((await hub.as('kubelet').list(podsOfNode)).names, ['default/a'])
    t.strictSame(joinable.requesters, ['system:bootstrap:abcdef'])
    const ready = await readyz(hub)
    t.equal(ready.status, 200, ready.text)
    t.notMatch(hub.lines.join('\n') + unready.text + ready.text, secret)

    await goOffline(cloud, hub)
    await hub.restart()
    t.strictSame(
      (await hub.as('kubelet').list(podsOfNode)).names,
      ['default/a'],
      'it has the certificate, and the cache, at the next start without a link',
    )
  },
)

/** A hub that has its certificate and a list of pods, and stopped when the link was down. */
async function stoppedOffline(t: Test) {
  const joinable = await startJoinable(t)
  const { cloud } = joinable
  cloud.addPods('a')
  const hub = await start(t, joinable)
  await hub.logged('an API server is now healthy')
  await hub.as('kubelet').list(podsOfNode)
  await goOffline(cloud, hub)
  await hub.stop()
  return { joinable, cloud, hub }
}

void t.test('a certificate that expired while the link was down is replaced', async (t) => {
  const { joinable, cloud, hub } = await stoppedOffline(t)
  const expired = await joinable.authority.issue({
    commonName: `system:node:${nodeName}`,
    organizations: ['system:nodes'],
    usage: 'client',
    lifetimeMs: -1_000,
  })
  const pair = join(hub.config.rootDir, 'pki', 'nodehub-client-current.pem')
  writeFileSync(pair, expired.certificate + expired.key)
  await hub.start()
  t.strictSame((await hub.as('kubelet').list(podsOfNode)).names, ['default/a'], 'from the cache')
  const { status, text } = await readyz(hub)
  t.equal(status, 200, text)
  t.match(text, /\[-\]certificate failed: .*expired.*readiness does not depend on it now/)
  const before = joinable.requesters.length
  await cloud.plug()
  await hub.logs(() => joinable.requesters.length > before)
  await hub.logs(() => readFileSync(pair, 'utf8') !== expired.certificate + expired.key)
  t.equal(joinable.requesters.at(-1), 'system:bootstrap:abcdef')
})

void t.test('a node that starts in 1970 without a link does not lock itself out', async (t) => {
  const { joinable, cloud, hub } = await stoppedOffline(t)
  const pair = join(hub.config.rootDir, 'pki', 'nodehub-client-current.pem')
  const [before, requested] = [readFileSync(pair, 'utf8'), joinable.requesters.length]
  const present = Date.now.bind(Date)
  const clock = t.capture(Date, 'now', () => present() % 3_600_000)
  await hub.start()
  await hub.offline()
  t.strictSame((await hub.as('kubelet').list(podsOfNode)).names, ['default/a'], 'from the cache')
  const { status, text } = await readyz(hub)
  t.equal(status, 200, text)
  t.match(text, /not valid before .*node clock 1970-01-01.*readiness does not depend on it now/)
  const shown = await certificateAt(hub)
  for (const each of [shown, new X509Certificate(hub.ca)]) {
    t.ok(each.validFromDate.getTime() <= Date.now(), 'who has the same clock takes it')
    t.ok(each.validToDate.getTime() > Date.now())
  }
  t.ok(shown.verify(new X509Certificate(hub.ca).publicKey))
  t.equal(readFileSync(pair, 'utf8'), before, 'its own certificate stays')
  clock.restore()
  cloud.addPods('b')
  await goOnline(cloud, hub)
  await until('what is new', async () => {
    const { names } = await hub.as('kubelet').list(podsOfNode)
    return names.includes('default/b')
  })
  t.equal(readFileSync(pair, 'utf8'), before)
  t.equal(joinable.requesters.length, requested, 'no other one is requested')
  await hub.restart()
  await hub.online()
  const [now, { validFromDate, validToDate }] = [Date.now(), await certificateAt(hub)]
  t.ok(validFromDate.getTime() <= now && now < validToDate.getTime(), 'it is made anew')
})

/** What the TLS port shows to any client. */
async function certificateAt(hub: TestHub): Promise<X509Certificate> {
  const { port, hostname } = new URL(hub.secureUrl)
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const certificate = socket.getPeerX509Certificate()
  socket.destroy()
  if (!certificate) throw new Error('the TLS port shows no certificate')
  return certificate
}

void t.test('files that are lost take nothing away, and are obtained again', async (t) => {
  const joinable = await startJoinable(t)
  const { cloud } = joinable
  cloud.addPods('a')
  const hub = await start(t, joinable)
  await hub.logged('an API server is now healthy')
  const { resourceVersion } = await hub.as('kubelet').list(podsOfNode)
  const watch = await hub.as('kubelet').watch(podsOfNode, { resourceVersion })
  const { folder, pair, ca } = obtainedFiles(hub.config.rootDir)
  joinable.verdict = 'wait'
  rmSync(folder, { recursive: true })
  hub.hub.reconfigure(hub.config)
  t.strictSame((await hub.as('kubelet').list(podsOfNode)).names, ['default/a'])
  t.match((await hub.as('kubelet').get(podsOfNode)).headers, { age: undefined }, 'by the cloud')
  joinable.verdict = 'sign'
  await hub.logs(
    () => hub.lines.filter((line) => line.includes('has obtained a client')).length > 1,
  )
  t.ok(existsSync(pair))
  t.ok(existsSync(ca))
  cloud.addPods('b')
  t.match(await watch.next(), { type: 'ADDED', object: { metadata: { name: 'b' } } })
})

void t.test(
  'while the CA is rotated, API servers of either are used, and nothing ends',
  async (t) => {
    const [old, next] = [await startJoinable(t), await startJoinable(t)]
    const both = old.authority.certificate + next.authority.certificate
    const hub = await startTestHub(t, {
      upstreams: [],
      flags: [`--server-addr=${old.cloud.url},${next.cloud.url}`, ...old.flags],
    })
    await hub.logged('an API server is now healthy')
    const { ca } = obtainedFiles(hub.config.rootDir)
    const node = await old.cloud.sandbox.clientCertificate(`system:node:${nodeName}`, [
      'system:nodes',
    ])
    const kubelet = hub.securelyAs('kubelet', node)
    const { resourceVersion } = await kubelet.list(podsOfNode)
    const watch = await kubelet.watch(podsOfNode, { resourceVersion })
    t.strictSame(next.cloud.sandbox.requests, [], 'it cannot be verified')
    const probed = next.cloud.sandbox.nextRequest(({ path }) => path === '/readyz')
    writeFileSync(ca, both)
    await probed
    old.cloud.addPods('a')
    t.match(await watch.next(), { type: 'ADDED', object: { metadata: { name: 'a' } } })

    // Without an operator.
    await hub.stop()
    writeFileSync(ca, old.authority.certificate)
    old.announce(both, joinToken)
    await hub.start()
    await next.cloud.sandbox.nextRequest(({ path }) => path === '/readyz')
    await until('both to be kept', () => readFileSync(ca, 'utf8') === both)
  },
)

const asRoot = process.getuid?.() === 0 ? false : 'only root is believed, and can be another user'

void t.test('a token that root hands over is used at once', { skip: asRoot }, async (t) => {
  const joinable = await startJoinable(t)
  joinable.cloud.sandbox.revoke(joinToken)
  const hub = await start(t, joinable)
  await hub.logged('the hub obtains no client certificate')
  t.match((await readyz(hub)).text, /with the bootstrap token abcdef: .* answered 401/)
  const url = `http://127.0.0.1:${hub.hub.opsPort}/v1/token`
  const post = async (body: string, method = 'POST') => {
    const { status } = await fetch(url, { method, body })
    return status
  }
  const refused = await fetch(url, {
    method: 'POST',
    body: JSON.stringify({ jointoken: 'bbbbbb.bbbbbbbbbbbbbbbb' }),
  })
  t.equal(refused.status, 200)
  t.match(await refused.text(), /^stored: .* if the cluster refuses it, \/readyz\?verbose says so/)
  await hub.logged('with the bootstrap token bbbbbb: ')
  t.match((await readyz(hub)).text, /\[-\]certificate failed: .* token bbbbbb: .* not signed with/)
  const next = 'ghijkl.abcdefabcdefabcd'
  for (const wrong of ['', '{', '[]', 'null', '{"jointoken":1}', `{"jointoken":"${next}."}`])
    t.equal(await post(wrong), 400, wrong)
  t.equal(await post(JSON.stringify({ jointoken: next, more: 'x'.repeat(2_000) })), 400)
  joinable.accept(next)
  const other = { url, headers: {}, method: 'POST', body: JSON.stringify({ jointoken: next }) }
  const [answer] = await requestAs(65_534, [other])
  t.equal(answer?.status, 403)
  t.strictSame(
    joinable.requesters,
    joinable.requesters.filter((name) => !name.includes('ghijkl')),
  )
  t.equal(await post(JSON.stringify({ jointoken: next }), 'PUT'), 200)
  await hub.logged('the hub has obtained a client certificate')
  t.equal(joinable.requesters.at(-1), 'system:bootstrap:ghijkl')
  t.notMatch(hub.lines.join('\n'), 'abcdefabcdefabcd')
})
