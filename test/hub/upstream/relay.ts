import { once } from 'node:events'
import { connect } from 'node:tls'
import { CertificateAuthority } from '../../../src/certificates/authority.ts'
import { Connections } from '../../../src/http/client/connections.ts'
import type { Credentials } from '../../../src/config/credentials.ts'
import type {
  Credential,
  Exchange,
  Incoming,
  WireReply,
} from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { Cloud } from '../../../src/hub/upstream/cloud.ts'
import { forwarder, Unreachable, type ForwardOptions } from '../../../src/hub/upstream/forward.ts'
import { upgrader } from '../../../src/hub/upstream/upgrade.ts'
import { Upstream } from '../../../src/hub/upstream/upstream.ts'
import { componentOf } from '../../../src/api/request/component.ts'
import { nodeIdentity } from '../../../src/api/request/identity.ts'
import { parseRequestInfo } from '../../../src/api/request/request-info.ts'
import { listen, listenSecurely } from '../../../src/http/server/listener.ts'
import { rawUpstream, type RawUpstream } from '../../kit/wire/upstream.ts'
import { dial, Wire, type Teardown } from '../../kit/wire/wire.ts'
import { patientRules, Probes } from './probes.ts'

/** What may be repeated, and what may not. */
export const get = 'GET /api/v1/pods HTTP/1.1\r\nHost: hub\r\n\r\n'
export const post = 'POST /api/v1/pods HTTP/1.1\r\nHost: hub\r\nContent-Length: 4\r\n\r\nbody'

/** May be repeated, and its answer is held for no longer than a stream may be. */
export const getLog = 'GET /logs/boot.log HTTP/1.1\r\nHost: hub\r\n\r\n'

export interface RelayOptions {
  readonly credential?: Credential
  readonly credentials?: Credentials
  readonly forwarding?: Partial<ForwardOptions>
  readonly upgradeAnswerMs?: number
  /** Clients speak TLS to it. */
  readonly secure?: boolean
}

export interface Relay {
  readonly cloud: Cloud
  readonly probes: Probes
  readonly connections: Connections
  readonly exchanges: readonly Exchange[]
  /** `answered` and `failed` with the number of the upstream, in order. */
  readonly outcomes: readonly string[]
  /** What went wrong after the answer had begun. */
  readonly broken: readonly unknown[]
  /** Codes of the answers to upgrades. */
  readonly upgraded: readonly Promise<number>[]
  readonly dial: () => Promise<Wire>
  /** A client that has sent this. */
  readonly ask: (request: string) => Promise<Wire>
}

/**
 * A listener that forwards to `origins` in this order, and nothing else: where nobody answers it
 * says so in a 503, with whether the request may have been seen as its body.
 */
export async function relay(
  t: Teardown,
  origins: readonly string[],
  {
    credential = 'caller',
    credentials = { files: [] },
    forwarding,
    upgradeAnswerMs,
    secure = false,
  }: RelayOptions = {},
): Promise<Relay> {
  const probes = new Probes()
  const connections = new Connections(credentials)
  const exchanges: Exchange[] = []
  const outcomes: string[] = []
  const broken: unknown[] = []
  const upgraded: Promise<number>[] = []
  const cloud = new Cloud({
    origins,
    build: (origin, onHealth) => new Upstream(origin, probes.probe, patientRules, { onHealth }),
    mode: 'priority',
    onOnline: () => undefined,
    onGone: (origin) => connections.drop(origin),
  })
  for (const upstream of cloud.upstreams) await upstream.probe()
  const forward = forwarder(cloud, connections, () => ({ receivedBytes: 0 }))
  const upgrade = upgrader(cloud, connections, upgradeAnswerMs)
  const options: ForwardOptions = {
    onOutcome: (origin, outcome) => outcomes.push(`${outcome} ${origins.indexOf(origin)}`),
    ...forwarding,
  }
  const handler = async (incoming: Incoming): Promise<WireReply> => {
    const exchange = exchangeOf(incoming, credential)
    exchanges.push(exchange)
    try {
      if (!incoming.upgrade) return await forward(exchange, options)
      const reply = await upgrade(exchange)
      if (reply.finalStatus) upgraded.push(reply.finalStatus)
      return reply
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      const body = Buffer.from(`sent: ${error.sent}`)
      const headers = new HeaderList(['Content-Length', String(body.length)])
      return { kind: 'body', from: 'hub', status: 503, headers, body }
    }
  }
  const listening = {
    at: [{ host: '127.0.0.1', port: 0 }],
    handler,
    maxConnections: 100,
    onBroken: (cause: unknown) => broken.push(cause),
  }
  const serving = await authority.issue({ commonName: 'hub', usage: 'server' })
  const listener = secure
    ? await listenSecurely({ ...listening, credentials: serving })
    : await listen(listening)
  t.teardown(async () => {
    cloud[Symbol.dispose]()
    await connections[Symbol.asyncDispose]()
    await listener.close(0)
  })
  const dialed = () => (secure ? dialSecurely(t, listener.port) : dial(t, listener.port))
  return {
    cloud,
    probes,
    connections,
    exchanges,
    outcomes,
    broken,
    upgraded,
    dial: dialed,
    ask: async (request) => (await dialed()).write(request),
  }
}

/** A listener before one upstream, whose bytes are up to the test. */
export async function oneUpstream(
  t: Teardown,
  options?: RelayOptions,
): Promise<{ readonly upstream: RawUpstream; readonly hub: Relay }> {
  const upstream = await rawUpstream(t)
  return { upstream, hub: await relay(t, [upstream.origin], options) }
}

/** A listener before two of them, of which the first comes first. */
export async function twoUpstreams(
  t: Teardown,
  options?: RelayOptions,
): Promise<{ readonly first: RawUpstream; readonly second: RawUpstream; readonly hub: Relay }> {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  return { first, second, hub: await relay(t, [first.origin, second.origin], options) }
}

const authority = await CertificateAuthority.create('relay')

async function dialSecurely(t: Teardown, port: number): Promise<Wire> {
  const socket = connect({
    host: '127.0.0.1',
    port,
    ca: authority.certificate,
    checkServerIdentity: () => undefined,
  })
  t.teardown(() => socket.destroy())
  await once(socket, 'secureConnect')
  return new Wire(socket)
}

const exchangeOf = (incoming: Incoming, credential: Credential): Exchange => ({
  ...incoming,
  info: parseRequestInfo(incoming.method, incoming.url),
  component: componentOf(incoming.headers.get('user-agent')),
  identity: nodeIdentity,
  credential,
  representations: [],
})
