/** Clients of `nodehub cluster` that announce bodies and do not send them whole. */
import { once } from 'node:events'
import { connect as connectFrom } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { mostUnproven, serveWebhooks, type WebhookOptions } from '../../src/cluster/serve.ts'
import { lookupOf } from '../cluster/admission/pool-lookup.ts'
import { heldBytes } from '../kit/held-bytes.ts'
import { fillSocket } from '../kit/wire/fill.ts'
import { Wire } from '../kit/wire/wire.ts'

const mebibyte = 1024 * 1024

const authority = await CertificateAuthority.create('webhooks')
const clients = await CertificateAuthority.create('clients')

const issued = await authority.issue({
  commonName: 'webhooks',
  usage: 'server',
  ipAddresses: ['127.0.0.1'],
})

const apiServer = await clients.issue({ commonName: 'kube-apiserver', usage: 'client' })

async function serving(t: Test, more: Partial<WebhookOptions> = {}) {
  const refused: string[] = []
  const listener = await serveWebhooks({
    address: '127.0.0.1',
    port: 0,
    certificate: () => issued,
    lookup: lookupOf(),
    propagate: false,
    onRefused: (why) => refused.push(why),
    ...more,
  })
  t.teardown(() => listener.close(0))
  return { port: listener.port, refused }
}

async function dial(
  t: Test,
  port: number,
  from: string,
  shown: { readonly certificate?: string; readonly key?: string } = {},
): Promise<{ readonly wire: Wire; readonly socket: TLSSocket }> {
  const socket = connect({
    socket: connectFrom({ host: '127.0.0.1', port, localAddress: from }),
    host: '127.0.0.1',
    ca: authority.certificate,
    ...(shown.certificate !== undefined && { cert: shown.certificate, key: shown.key }),
  })
  t.teardown(() => socket.destroy())
  await once(socket, 'secureConnect')
  return { wire: new Wire(socket), socket }
}

const head = (bytes: number): string =>
  `POST /mutate/nodes HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`

const review = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: { uid: 'u-1', kind: { kind: 'Node' }, operation: 'CREATE', object: { metadata: {} } },
})

const ready = 'GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n'

const whole = head(review.length) + review

void t.test('unfinished bodies hold a few MiB together, and block no others', async (t) => {
  const { port, refused } = await serving(t)
  const attackers = await Promise.all(Array.from({ length: 24 }, () => dial(t, port, '127.0.0.2')))
  const before = heldBytes()
  const part = Buffer.alloc(30 * 1024, '[')
  await Promise.all(
    attackers.map(async ({ wire, socket }) => {
      wire.write(head(8 * mebibyte))
      // A body that makes room for another gets 429, and its connection may be reset.
      await fillSocket(socket, part).catch(() => undefined)
    }),
  )
  t.ok(heldBytes() - before < 64 * mebibyte, 'of 180 MiB that they would send')
  const { wire } = await dial(t, port, '127.0.0.1')
  t.equal((await wire.write(whole).answer()).status, 200)
  t.ok(refused.includes('full'))
})

void t.test('a review is answered while others leave theirs unfinished', async (t) => {
  const { port, refused } = await serving(t)
  const attackers = await Promise.all(Array.from({ length: 300 }, () => dial(t, port, '127.0.0.2')))
  for (const { wire } of attackers) wire.write(head(8 * mebibyte)).write('[')
  const { wire } = await dial(t, port, '127.0.0.1')
  t.equal((await wire.write(whole).answer()).status, 200)
  t.equal((await wire.write(whole).answer()).status, 200, 'nor is it put off for the next')
  const answers = await Promise.all(attackers.map(async ({ wire }) => (await wire.answer()).status))
  t.strictSame([...new Set(answers)], [504])
  t.strictSame([...new Set(refused)], ['slow-body'])
})

void t.test('a body that does not arrive in time gets 504', { timeout: 20_000 }, async (t) => {
  const { port } = await serving(t)
  const { wire } = await dial(t, port, '127.0.0.1')
  const { status, body } = await wire.write(head(100)).write('{').answer()
  t.equal(status, 504)
  t.match(JSON.parse(body), { kind: 'Status', message: /did not arrive in time/ })
})

void t.test(
  'a body announced larger than a review may be is refused before it is sent',
  async (t) => {
    const { port } = await serving(t)
    const { wire } = await dial(t, port, '127.0.0.1')
    t.equal((await wire.write(head(8 * mebibyte + 1)).answer()).status, 413)
  },
)

void t.test('reviews that come at once from one address are all answered', async (t) => {
  const { port, refused } = await serving(t)
  const servers = await Promise.all(Array.from({ length: 200 }, () => dial(t, port, '127.0.0.1')))
  for (const { wire } of servers) wire.write(whole)
  const answers = await Promise.all(servers.map(async ({ wire }) => (await wire.answer()).status))
  t.strictSame([...new Set(answers)], [200])
  t.strictSame(refused, [])
})

void t.test('with --client-ca a review without its certificate is refused unread', async (t) => {
  const { port, refused } = await serving(t, { clientCa: () => clients.certificate })
  const other = await (
    await CertificateAuthority.create('others')
  ).issue({ commonName: 'x', usage: 'client' })
  for (const shown of [{}, other]) {
    const { wire } = await dial(t, port, '127.0.0.1', shown)
    const { status, body } = await wire.write(head(8 * mebibyte)).answer()
    t.equal(status, 401)
    t.match(JSON.parse(body), { kind: 'Status', reason: 'Unauthorized' })
  }
  t.strictSame(refused, ['unauthenticated', 'unauthenticated'])
  const { wire } = await dial(t, port, '127.0.0.1', apiServer)
  t.equal((await wire.write(whole).answer()).status, 200)
  const conversion = await dial(t, port, '127.0.0.1')
  const sent = whole.replace('/mutate/nodes', '/convert')
  t.match(await conversion.wire.write(sent).answer(), { status: 400, body: /no ConversionReview/ })
  const probe = await dial(t, port, '127.0.0.1')
  t.equal((await probe.wire.write(ready).answer()).status, 200)
})

void t.test('connections without a certificate make room for those that show one', async (t) => {
  const { port } = await serving(t, { clientCa: () => clients.certificate })
  const servers = await Promise.all(
    Array.from({ length: 100 }, () => dial(t, port, '127.0.0.1', apiServer)),
  )
  for (const { wire } of servers) t.equal((await wire.write(ready).answer()).status, 200)
  const closed: number[] = []
  const others = Array.from({ length: mostUnproven + 1 }, (_, i) => {
    const socket = connectFrom({ host: '127.0.0.1', port, localAddress: '127.0.0.2' })
    socket.on('error', () => undefined).once('close', () => closed.push(i))
    t.teardown(() => socket.destroy())
    return socket.resume()
  })
  await once(others[0] ?? t, 'close')
  const answers = await Promise.all(servers.map(({ wire }) => wire.write(whole).answer()))
  t.ok(answers.every(({ status }) => status === 200))
  t.strictSame(closed, [0], 'one more than 256 connections without a caller have come')
})

void t.test('a replaced client CA ends the connections it has proven', async (t) => {
  const later = await CertificateAuthority.create('later')
  let clientCa = clients.certificate
  const { port } = await serving(t, { clientCa: () => clientCa })
  const { wire } = await dial(t, port, '127.0.0.1', apiServer)
  t.equal((await wire.write(whole).answer()).status, 200)
  clientCa = later.certificate
  await wire.closed
  const again = await dial(t, port, '127.0.0.1', apiServer)
  t.equal((await again.wire.write(whole).answer()).status, 401)
})
