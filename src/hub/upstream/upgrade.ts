import type { Agent as AnyAgent, ClientRequest, IncomingMessage } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import util from 'node:util'
import type HttpProxy from 'http-proxy'
import { onAbort } from '../../base/abort.ts'
import { after, elapsed, unlessClosed } from '../../base/clock.ts'
import { Agent as PlainAgent } from '../../base/node-http.ts'
import type { Connections } from '../../http/client/connections.ts'
import { closingHead } from '../../http/exchange/closing-head.ts'
import type { Exchange, UpgradeReply } from '../../http/exchange/exchange.ts'
import { HeaderList } from '../../http/exchange/headers.ts'
import type { Cloud } from './cloud.ts'
import { Unreachable } from './forward.ts'
import { outgoingHeaders } from './outgoing-headers.ts'
import type { Upstream } from './upstream.ts'

/**
 * How long an API server may take until it answers whether it changes the protocol: nothing of the
 * client is read meanwhile, so that its leaving is not noticed. As long as an API server gives any
 * other request (`--request-timeout`).
 */
export const upgradeAnswerMs = 60_000

/** How long a client may take to close its end once it was sent everything. */
const lingerMs = 1_000

export type Upgrade = (exchange: Exchange) => Promise<UpgradeReply>

/**
 * http-proxy's passes over an upgrade; their list is part of the object, though not of its types.
 */
interface WithPasses {
  wsPasses: { readonly name: string }[]
}

/**
 * Forwards requests that change the protocol of their connection: exec, attach, port-forward, a
 * watch over WebSocket. Each gets an upstream connection of its own, and is cut where that is not
 * answered within `answerMs`. Throws `Unreachable` when there is no upstream to ask.
 */
export function upgrader(
  cloud: Cloud,
  connections: Connections,
  answerMs: number = upgradeAnswerMs,
): Upgrade {
  // Loaded with the first upgrade: many nodes never see one.
  let loading: Promise<HttpProxy> | undefined
  return async (exchange) => {
    loading ??= upgradingProxy()
    const proxy = await loading
    const { socket: upstreamSocket, upstream } = await connect(exchange, cloud, connections)
    const gone = onAbort(exchange.signal, () => upstreamSocket.destroy())
    const { promise: answered, resolve: tell } = Promise.withResolvers<number>()
    return {
      kind: 'upgrade',
      from: 'cloud',
      answered,
      take: (socket, head) => {
        tellers.set(socket, tell)
        const late = after(answerMs, () => socket.destroy())
        void answered.then(() => late[Symbol.dispose]())
        upstreamSocket.on('data', () => upstream.heard())
        const links = [upstream.tenure, exchange.signal].map((signal) =>
          onAbort(signal, () => socket.destroy()),
        )
        socket.once('close', () => {
          for (const link of links) link[Symbol.dispose]()
          gone[Symbol.dispose]()
          upstreamSocket.destroy()
          tell(0)
        })
        const headers = outgoingHeaders(exchange, upstream.host, connections)
        proxy.ws(asRequest(exchange, socket, headers), socket, head, {
          target: upstream.origin,
          agent: handing(upstreamSocket, upstream.origin),
        })
      },
    }
  }
}

/**
 * Called with the code of the answer, by the client's socket: http-proxy's events carry no other
 * mark of the request.
 */
const tellers = new WeakMap<Duplex, (code: number) => void>()

async function upgradingProxy(): Promise<HttpProxy> {
  // http-proxy takes util._extend as it loads, which Node deprecates aloud at its first use; this
  // is what it stands for.
  Object.assign(util, { _extend: Object.assign })
  const { default: httpProxy } = await import('http-proxy')
  const proxy = httpProxy.createProxyServer({ ws: true, xfwd: false, changeOrigin: true })
  // The first pass destroys every upgrade but a WebSocket's GET; SPDY upgrades by POST.
  const passes = proxy as unknown as WithPasses
  passes.wsPasses = passes.wsPasses.filter(({ name }) => name !== 'checkMethodAndHeader')
  proxy.on('proxyReqWs', (request, client, socket) => {
    // http-proxy would rewrite the path, and merge double slashes.
    request.path = client.url ?? '/'
    request.once('upgrade', () => tellers.get(socket)?.(101))
    answerRefusals(request, socket)
  })
  proxy.on('error', (_error, _request, socket) => {
    if (socket instanceof Socket) breakOff(socket)
  })
  return proxy
}

/** A connection to the first upstream that takes one. */
async function connect(
  exchange: Exchange,
  cloud: Cloud,
  connections: Connections,
): Promise<{ socket: Socket; upstream: Upstream }> {
  let failure: unknown
  for (const upstream of cloud.candidates(exchange)) {
    exchange.signal.throwIfAborted()
    const began = elapsed()
    try {
      const socket = await connections.connect(exchange.credential, upstream.origin)
      return { socket, upstream }
    } catch (error) {
      failure = error
      upstream.failed(began)
    }
  }
  throw new Unreachable(false, failure)
}

/** An agent that gives out one connection, which has been made already. */
function handing(socket: Socket, origin: string): AnyAgent {
  const agent = origin.startsWith('https:')
    ? new TlsAgent({ keepAlive: false })
    : new PlainAgent({ keepAlive: false })
  agent.createConnection = () => socket
  return agent
}

/** The part of a request that http-proxy reads, with what the hub does not pass on left out. */
function asRequest(exchange: Exchange, socket: Duplex, passed: HeaderList): IncomingMessage {
  const sent = passed
    .with('Connection', 'Upgrade')
    .with('Upgrade', exchange.headers.get('upgrade') ?? '')
  const { method, url } = exchange
  return {
    method,
    url,
    headers: grouped(sent),
    socket,
    connection: socket,
  } as unknown as IncomingMessage
}

/**
 * Fields by name, in their own case, repeated ones as lists: the way node:http sends them as they
 * came.
 */
function grouped(headers: HeaderList): Record<string, string | string[]> {
  const fields = new Map<string, { name: string; values: string[] }>()
  for (let i = 0; i < headers.raw.length; i += 2) {
    const name = headers.raw[i] ?? ''
    const field = fields.get(name.toLowerCase()) ?? { name, values: [] }
    field.values.push(headers.raw[i + 1] ?? '')
    fields.set(name.toLowerCase(), field)
  }
  return Object.fromEntries(
    [...fields.values()].map(({ name, values }) => {
      const [only] = values
      // http-proxy rewrites the host by this very name.
      const key = name.toLowerCase() === 'host' ? 'host' : name
      return [key, values.length === 1 && only !== undefined ? only : values]
    }),
  )
}

/**
 * A server that does not upgrade says why in an ordinary answer, which clients read to choose their
 * next try. It goes back as it came, instead of http-proxy's own handling, which would fold its
 * fields and leave a chunked body unchunked; http-proxy sets that up after it has shown the
 * request, so it is taken away a moment later.
 */
function answerRefusals(request: ClientRequest, socket: Duplex): void {
  process.nextTick(() => {
    request.removeAllListeners('response').once('response', (response: IncomingMessage) => {
      const { statusCode = 0, statusMessage = '' } = response
      tellers.get(socket)?.(statusCode)
      const headers = new HeaderList(response.rawHeaders).without((name) => ofFraming.has(name))
      socket.write(closingHead(statusCode, statusMessage, headers), 'latin1')
      response.pipe(socket)
      socket.once('finish', () => unlessClosed(socket, lingerMs, () => socket.destroy()))
      response.once('close', () => {
        if (!response.complete) breakOff(socket)
      })
    })
  })
}

/** The body has lost its chunks on the way here; its end is the end of the connection. */
const ofFraming = new Set(['transfer-encoding', 'connection', 'keep-alive'])

/**
 * Shows a client that the answer broke off. The end of the connection is the end of the body here,
 * so that only a reset says that some is missing; Node does not reset a TLS connection, but
 * destroying it leaves out close_notify, which says the same.
 */
function breakOff(socket: Duplex): void {
  if (socket instanceof Socket && !(socket instanceof TLSSocket)) socket.resetAndDestroy()
  else socket.destroy()
}
