import type { TLSSocket } from 'node:tls'
import t from 'tap'
import { Secret } from '../../../src/base/secret.ts'
import { Connections } from '../../../src/http/client/connections.ts'
import type { Credentials } from '../../../src/config/credentials.ts'
import type { Credential } from '../../../src/http/exchange/exchange.ts'
import { intermediateAuthority } from '../../kit/certificates.ts'
import { authority, type Pair } from '../../kit/wire/certificates.ts'
import { answerOf, rawUpstream, refusingOrigin, type RawUpstream } from '../../kit/wire/upstream.ts'
import { valuesOf, Wire, type Teardown } from '../../kit/wire/wire.ts'

const pki = await authority()
const serving = await pki.server({ ipAddresses: ['127.0.0.1'], dnsNames: ['api.internal'] })
const first = await pki.client('first-node')
const second = await pki.client('second-node')

const nobody: Credentials = { files: [] }

function connectionsOf(t: Teardown, credentials: Credentials): Connections {
  const connections = new Connections(credentials)
  t.teardown(() => connections[Symbol.asyncDispose]())
  return connections
}

interface Heard {
  readonly status: number
  readonly body: string
}

/** Sends a GET and resolves with the whole answer. */
const get = (
  connections: Connections,
  credential: Credential,
  origin: string,
  headers: string[] = [],
): Promise<Heard> =>
  new Promise((resolve, reject) => {
    let status = 0
    let body = ''
    connections.dispatch(
      credential,
      origin,
      { method: 'GET', path: '/', headers },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, code) => void (status = code),
        onResponseData: (_controller, chunk) => void (body += chunk.toString()),
        onResponseEnd: () => resolve({ status, body }),
        onResponseError: (_controller, error) => reject(error),
      },
    )
  })

const nameShown = (wire: Wire): string => {
  const { subject } = (wire.socket as TLSSocket).getPeerCertificate()
  return typeof subject?.CN === 'string' ? subject.CN : 'nobody'
}

/**
 * Answers each request with the identity of its connection; with `close`, each gets a connection of
 * its own.
 */
async function witness(t: Teardown, pair: Pair, close = false): Promise<RawUpstream> {
  const upstream = await rawUpstream(t, {
    ...pair,
    ca: pki.ca,
    requestCert: true,
    rejectUnauthorized: false,
  })
  upstream.each((wire) => void testify(wire, close))
  return upstream
}

async function testify(wire: Wire, close: boolean): Promise<void> {
  try {
    for (;;) {
      await wire.head()
      wire.write(
        answerOf(nameShown(wire), `HTTP/1.1 200 OK${close ? '\r\nConnection: close' : ''}`),
      )
      if (close) wire.socket.end()
    }
  } catch {
    // The client has gone.
  }
}

void t.test(
  'requests of the node show its certificate, those of callers never do, in any order',
  async (t) => {
    for (const close of [false, true]) {
      const upstream = await witness(t, serving, close)
      const connections = connectionsOf(t, pki.credentials(first))
      for (const credential of [
        'caller',
        'node',
        'caller',
        'node',
        'node',
        'caller',
        'caller',
      ] as const) {
        const { body } = await get(connections, credential, upstream.origin)
        t.equal(body, credential === 'node' ? 'first-node' : 'nobody')
      }
      if (close) t.equal(upstream.connections.length, 7)
    }
  },
)

void t.test('an intermediate that is the whole CA is an anchor', async (t) => {
  const signer = await intermediateAuthority()
  const pair = await signer.issue({
    commonName: 'server',
    usage: 'server',
    ipAddresses: ['127.0.0.1'],
  })
  const { origin } = await witness(t, { cert: pair.certificate, key: pair.key })
  const connections = connectionsOf(t, { ca: signer.certificate, files: [] })
  t.strictSame(await connections.probe(origin, ['/readyz'], 5_000), [200])
  t.match(await get(connections, 'node', origin), { status: 200 })
  const socket = await connections.connect('caller', origin)
  t.teardown(() => socket.destroy())
  const upgrade = new Wire(socket).write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  t.match(await upgrade.answer(), { status: 200 })
})

void t.test('a connection for an upgrade shows the certificate for the node only', async (t) => {
  const upstream = await witness(t, serving)
  const connections = connectionsOf(t, pki.credentials(first))
  for (const credential of ['node', 'caller', 'node'] as const) {
    const socket = await connections.connect(credential, upstream.origin)
    t.teardown(() => socket.destroy())
    const answer = await new Wire(socket).write('GET / HTTP/1.1\r\nHost: x\r\n\r\n').answer()
    t.equal(answer.body, credential === 'node' ? 'first-node' : 'nobody')
    t.equal((socket as TLSSocket).alpnProtocol === 'h2', false)
  }
})

void t.test('no other request uses a connection for an upgrade', async (t) => {
  const upstream = await witness(t, serving)
  const connections = connectionsOf(t, pki.credentials(first))
  const socket = await connections.connect('node', upstream.origin)
  t.teardown(() => socket.destroy())
  await get(connections, 'node', upstream.origin)
  t.equal(upstream.connections.length, 2)
})

void t.test(
  'replaced credentials are shown from the next request on, and by the node only',
  async (t) => {
    const upstream = await witness(t, serving)
    const connections = connectionsOf(t, pki.credentials(first))
    t.equal((await get(connections, 'node', upstream.origin)).body, 'first-node')
    t.equal((await get(connections, 'caller', upstream.origin)).body, 'nobody')
    connections.replaceCredentials(pki.credentials(second))
    t.equal((await get(connections, 'caller', upstream.origin)).body, 'nobody')
    t.equal((await get(connections, 'node', upstream.origin)).body, 'second-node')
    t.equal((await get(connections, 'caller', upstream.origin)).body, 'nobody')
    const socket = await connections.connect('node', upstream.origin)
    t.teardown(() => socket.destroy())
    t.equal(
      await new Wire(socket)
        .write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
        .answer()
        .then(({ body }) => body),
      'second-node',
    )
    for (const old of upstream.connections.slice(0, 2)) await old.ended
  },
)

void t.test(
  'a stream under way survives replaced credentials and comes to its own end',
  async (t) => {
    const upstream = await rawUpstream(t)
    const connections = connectionsOf(t, nobody)
    const answer = get(connections, 'node', upstream.origin)
    const wire = await upstream.next()
    await wire.head()
    wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n')
    connections.replaceCredentials(nobody)
    const another = get(connections, 'node', upstream.origin)
    const fresh = await upstream.next()
    await fresh.head()
    fresh.write(answerOf('new'))
    t.equal((await another).body, 'new')
    wire.write('1\r\nb\r\n0\r\n\r\n')
    t.equal((await answer).body, 'ab')
    await wire.ended
  },
)

void t.test('the node’s token goes only with requests of the node', async (t) => {
  const connections = connectionsOf(t, { token: new Secret('secret'), files: [] })
  t.equal(connections.authorization('node'), 'Bearer secret')
  t.equal(connections.authorization('caller'), undefined)
  connections.replaceCredentials({ token: new Secret('newer'), files: [] })
  t.equal(connections.authorization('node'), 'Bearer newer')
  connections.replaceCredentials(nobody)
  t.equal(connections.authorization('node'), undefined)
})

void t.test('requests to a server that the CA has not signed fail', async (t) => {
  const other = await authority()
  const upstream = await witness(t, await other.server())
  const connections = connectionsOf(t, pki.credentials(first))
  await t.rejects(get(connections, 'node', upstream.origin))
  await t.rejects(get(connections, 'caller', upstream.origin))
  await t.rejects(connections.connect('caller', upstream.origin))
  await t.rejects(connections.probe(upstream.origin, ['/readyz'], 5_000))
})

void t.test(
  'a server’s certificate is checked for the name that the credentials give',
  async (t) => {
    const upstream = await witness(t, await pki.server({ dnsNames: ['api.internal'] }))
    const { port } = upstream
    for (const origin of [upstream.origin, `https://localhost:${port}`]) {
      const named = connectionsOf(t, { ...pki.credentials(first), serverName: 'api.internal' })
      const host = ['Host', new URL(origin).host]
      t.equal((await get(named, 'node', origin, host)).body, 'first-node', origin)
      t.equal((await get(named, 'caller', origin, host)).body, 'nobody')
      t.strictSame(await named.probe(origin, ['/readyz'], 5_000), [200])
      const socket = await named.connect('caller', origin)
      socket.destroy()
      const unnamed = connectionsOf(t, pki.credentials(first))
      await t.rejects(get(unnamed, 'node', origin, host))
      await t.rejects(unnamed.connect('node', origin))
    }
  },
)

void t.test('a probe goes over a new connection, with the node’s credentials', async (t) => {
  const upstream = await rawUpstream(t, {
    ...serving,
    ca: pki.ca,
    requestCert: true,
    rejectUnauthorized: false,
  })
  const connections = connectionsOf(t, {
    ...pki.credentials(first),
    token: new Secret('node-token'),
  })
  for (const codes of [[200, 500], [503]]) {
    const statuses = connections.probe(upstream.origin, ['/readyz', '/livez'], 5_000)
    const wire = await upstream.next()
    for (const [i, code] of codes.entries()) {
      const head = await wire.head()
      t.equal(head.line, `GET ${i === 0 ? '/readyz' : '/livez'} HTTP/1.1`)
      t.strictSame(valuesOf(head, 'authorization'), ['Bearer node-token'])
      wire.write(answerOf('body', `HTTP/1.1 ${code} Said`))
    }
    t.equal(nameShown(wire), 'first-node')
    t.strictSame(await statuses, codes)
    await wire.ended
  }
})

void t.test(
  'a probe fails without an answer in time, and succeeds with a head and half a body',
  async (t) => {
    const upstream = await rawUpstream(t)
    const connections = connectionsOf(t, nobody)
    await t.rejects(connections.probe(upstream.origin, ['/readyz'], 50))
    const half = connections.probe(upstream.origin, ['/readyz'], 50)
    await upstream.next()
    const wire = await upstream.next()
    await wire.head()
    wire.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc')
    t.strictSame(await half, [200])
    for (const seen of upstream.connections) await seen.ended
    await t.rejects(connections.probe(await refusingOrigin(), ['/readyz'], 5_000), {
      code: 'ECONNREFUSED',
    })
  },
)

void t.test('an answer that trickles in does not extend a probe’s time', async (t) => {
  const upstream = await rawUpstream(t)
  const connections = connectionsOf(t, nobody)
  for (const [head, part] of [
    ['HTTP/1.1 200 OK\r\n', 'X: 1\r\n'],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\na\r\n'],
  ] as const) {
    const asked = connections.probe(upstream.origin, ['/readyz'], 60).catch(() => ['none'])
    const wire = await upstream.next()
    await wire.head()
    wire.write(head)
    const drip = setInterval(() => wire.write(part), 10)
    t.teardown(() => clearInterval(drip))
    t.strictSame(await asked, [part.startsWith('X') ? 'none' : 200])
    clearInterval(drip)
  }
})

void t.test('an idle connection is used again, one in use is not', async (t) => {
  const upstream = await rawUpstream(t)
  const connections = connectionsOf(t, nobody)
  const one = get(connections, 'node', upstream.origin)
  const wire = await upstream.next()
  await wire.head()
  const two = get(connections, 'node', upstream.origin)
  const other = await upstream.next()
  await other.head()
  wire.write(answerOf('one'))
  other.write(answerOf('two'))
  t.strictSame([(await one).body, (await two).body], ['one', 'two'])
  // A connection is free a turn after its answer has been read.
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  const three = get(connections, 'node', upstream.origin)
  await Promise.race([wire.head(), other.head()])
  t.equal(upstream.connections.length, 2)
  wire.write(answerOf('three'))
  other.write(answerOf('three'))
  await three
})

void t.test(
  'disposing of the connections cuts those that are left, retired ones too',
  async (t) => {
    const upstream = await rawUpstream(t)
    const connections = new Connections(nobody)
    const answers = [get(connections, 'node', upstream.origin)]
    const wire = await upstream.next()
    connections.replaceCredentials(nobody)
    answers.push(get(connections, 'caller', upstream.origin))
    const other = await upstream.next()
    const failed = Promise.allSettled(answers)
    await connections[Symbol.asyncDispose]()
    t.strictSame(
      (await failed).map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    await Promise.all([wire.ended, other.ended])
  },
)
