import type { Agent as AnyAgent, ClientRequest, IncomingMessage } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import util from 'node:util'
import type HttpProxy from 'http-proxy'
import { onAbort } from '../../base/abort.ts'
import { after, elapsed, afterUnlessClosed } from '../../base/clock.ts'
import { Agent as PlainAgent } from '../../base/node-http.ts'
import type { OpenList } from '../../base/open-list.ts'
import { resetSocket } from '../../base/reset-socket.ts'
import type { Connections } from '../../http/client/connections.ts'
import { closingHead } from '../../http/exchange/closing-head.ts'
import type { Exchange, UpgradeReply } from '../../http/exchange/exchange.ts'
import { HeaderList } from '../../http/exchange/headers.ts'
import { endSpan } from '../../tracing/span.ts'
import type { Cloud } from './cloud.ts'
import { attemptSpan, Unreachable, outgoingHeaders } from './forward.ts'
import type { UnderWay, Upstream } from './upstream.ts'

/**
 * How long an API server may take to answer an upgrade: the hub does not read from the client
 * meanwhile, and so does not notice when it disconnects. As long as an API server gives any other
 * request (`--request-timeout`).
 */
export const upgradeAnswerMs = 60_000

/** How long a client may take to close its end after the end of a refusal. */
const lingerMs = 1_000

export type Upgrade = (exchange: Exchange) => Promise<UpgradeReply>

/** http-proxy's passes over an upgrade, which its types leave out. */
interface WithPasses {
  wsPasses: { readonly name: string }[]
}

/** A connection that was made for one upgrade, and the request to send on it. */
export interface UpgradeTarget {
  readonly socket: Socket
  readonly origin: string
  /** Path and query. */
  readonly url: string
  readonly headers: HeaderList
  readonly from: UpgradeReply['from']
  /** Where it is listed until it is over, to be stopped. */
  readonly underWay?: OpenList<UnderWay>
  /** Called for all that is received. */
  readonly received?: () => void
  /** Called with the status of the answer, 0 where the connection ended before. */
  readonly answered?: (status: number) => void
}

/**
 * Forwards requests that change the protocol of their connection: exec, attach, port-forward, a
 * watch over WebSocket. Each has its own upstream connection, and is cut where no answer comes
 * within `answerMs`. Throws `Unreachable` where no upstream takes a connection.
 */
export const upgrader = (
  cloud: Cloud,
  connections: Connections,
  answerMs: number = upgradeAnswerMs,
): Upgrade =>
  upgraderTo(async (exchange) => {
    const { socket, upstream } = await connect(exchange, cloud, connections)
    const span = attemptSpan(exchange, upstream.origin)
    return {
      socket,
      origin: upstream.origin,
      url: exchange.url,
      headers: outgoingHeaders(exchange, upstream.host, connections, span),
      answered: (status) => span && endSpan(span, status, 400),
      from: 'cloud',
      underWay: upstream.underWay,
      received: () => (upstream.receivedAt = elapsed()),
    }
  }, answerMs)

// Loaded with the first upgrade: many nodes never have one.
let loading: Promise<HttpProxy> | undefined

/** The same, to where `open` connects. */
export function upgraderTo(
  open: (exchange: Exchange) => Promise<UpgradeTarget>,
  answerMs: number = upgradeAnswerMs,
): Upgrade {
  return async (exchange) => {
    const proxy = await (loading ??= upgradingProxy())
    const target = await open(exchange)
    const { socket: upstreamSocket, origin, underWay, received } = target
    const gone = onAbort(exchange.signal, () => upstreamSocket.destroy())
    let client: Duplex | undefined
    const listed: UnderWay = {
      stop: () => {
        client?.destroy()
        upstreamSocket.destroy()
      },
    }
    underWay?.add(listed)
    upstreamSocket.once('close', () => underWay?.delete(listed))
    const { promise: answered, resolve: tell } = Promise.withResolvers<number>()
    void answered.then(target.answered)
    return {
      kind: 'upgrade',
      from: target.from,
      explanation: { upstream: origin },
      finalStatus: answered,
      take: (socket, head) => {
        answerCallbacks.set(socket, tell)
        const late = after(answerMs, () => socket.destroy())
        void answered.then(() => late[Symbol.dispose]())
        if (received) upstreamSocket.on('data', received)
        client = socket
        const cut = onAbort(exchange.signal, () => socket.destroy())
        socket.once('close', () => {
          underWay?.delete(listed)
          cut[Symbol.dispose]()
          gone[Symbol.dispose]()
          upstreamSocket.destroy()
          tell(0)
        })
        proxy.ws(asRequest(exchange, socket, target), socket, head, {
          target: origin,
          agent: handing(upstreamSocket, origin),
        })
      },
    }
  }
}

/**
 * Called with the status of the answer, by the client's socket: http-proxy's events identify the
 * request by nothing else.
 */
const answerCallbacks = new WeakMap<Duplex, (status: number) => void>()

async function upgradingProxy(): Promise<HttpProxy> {
  // http-proxy reads util._extend when it loads. Node prints a deprecation warning at its first
  // use, and documents Object.assign as the replacement.
  Object.assign(util, { _extend: Object.assign })
  const { default: httpProxy } = await import('http-proxy')
  const proxy = httpProxy.createProxyServer({ ws: true, xfwd: false, changeOrigin: true })
  // The first pass destroys every upgrade but a WebSocket's GET; SPDY upgrades by POST.
  const passes = proxy as unknown as WithPasses
  passes.wsPasses = passes.wsPasses.filter(({ name }) => name !== 'checkMethodAndHeader')
  proxy.on('proxyReqWs', (request, client, socket) => {
    // http-proxy would rewrite the path, and merge double slashes.
    request.path = client.url ?? '/'
    request.once('upgrade', () => answerCallbacks.get(socket)?.(101))
    answerRefusals(request, socket)
  })
  proxy.on('error', (_error, _request, socket) => {
    if (socket instanceof Socket) breakOff(socket)
  })
  return proxy
}

/** Connects to the first upstream that accepts. */
async function connect(
  exchange: Exchange,
  cloud: Cloud,
  connections: Connections,
): Promise<{ socket: Socket; upstream: Upstream }> {
  let failure: unknown
  for (const upstream of cloud.attemptOrder(exchange)) {
    exchange.signal.throwIfAborted()
    const began = elapsed()
    try {
      const socket = await connections.connect(exchange.credential, upstream.origin)
      if (!upstream.isGone) return { socket, upstream }
      // Nothing would end it later.
      socket.destroy()
    } catch (error) {
      failure = error
      upstream.failed(began)
    }
  }
  throw new Unreachable(false, failure)
}

/** An agent for one connection that exists already. */
function handing(socket: Socket, origin: string): AnyAgent {
  const agent = origin.startsWith('https:')
    ? new TlsAgent({ keepAlive: false })
    : new PlainAgent({ keepAlive: false })
  agent.createConnection = () => socket
  return agent
}

/** The part of a request that http-proxy reads, with the fields that the hub passes on. */
function asRequest(
  { method, headers }: Exchange,
  socket: Duplex,
  { url, headers: passed }: UpgradeTarget,
): IncomingMessage {
  const sent = passed.with('Connection', 'Upgrade').with('Upgrade', headers.get('upgrade') ?? '')
  return {
    method,
    url,
    headers: grouped(sent),
    socket,
    connection: socket,
  } as unknown as IncomingMessage
}

/** Fields by name in their own case, repeated ones as lists: node:http sends these unchanged. */
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
 * A server that does not upgrade says why in an ordinary answer, by which clients choose the next
 * protocol to try. The hub passes it on unchanged. http-proxy's own handler would fold its fields
 * and leave a chunked body unchunked; http-proxy adds that handler after it has announced the
 * request, so the hub removes it in the next tick.
 */
function answerRefusals(request: ClientRequest, socket: Duplex): void {
  process.nextTick(() => {
    request.removeAllListeners('response').once('response', (response: IncomingMessage) => {
      const { statusCode = 0, statusMessage = '' } = response
      answerCallbacks.get(socket)?.(statusCode)
      const headers = new HeaderList(response.rawHeaders).without((name) => ofFraming.has(name))
      socket.write(closingHead(statusCode, statusMessage, headers), 'latin1')
      response.pipe(socket)
      socket.once('finish', () => afterUnlessClosed(socket, lingerMs, () => socket.destroy()))
      response.once('close', () => {
        if (!response.complete) breakOff(socket)
      })
    })
  })
}

/** node:http has removed the chunks of the body; it ends with the connection. */
const ofFraming = new Set(['transfer-encoding', 'connection', 'keep-alive'])

/**
 * Shows a client that the answer broke off. The body ends with the connection, so that only a reset
 * shows that part of it is missing. Node does not reset a TLS connection, but destroys it without
 * close_notify, which shows the same.
 */
function breakOff(socket: Duplex): void {
  if (socket instanceof Socket && !(socket instanceof TLSSocket)) resetSocket(socket)
  else socket.destroy()
}
