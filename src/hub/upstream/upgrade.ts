import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { onAbort } from '../../base/abort.ts'
import { after, elapsed, afterUnlessClosed } from '../../base/clock.ts'
import { request } from '../../base/node-http.ts'
import type { OpenList } from '../../base/open-list.ts'
import { resetSocket } from '../../base/reset-socket.ts'
import type { Connections } from '../../http/client/connections.ts'
import type { Exchange, UpgradeReply } from '../../http/exchange/exchange.ts'
import { HeaderList } from '../../http/exchange/headers.ts'
import { rawHead } from '../../http/exchange/raw-head.ts'
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

/** The same, to where `open` connects. */
export function upgraderTo(
  open: (exchange: Exchange) => Promise<UpgradeTarget>,
  answerMs: number = upgradeAnswerMs,
): Upgrade {
  return async (exchange) => {
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
        join(socket, head, sent(exchange, target), tell)
      },
    }
  }
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

/** The request upstream, with the fields that the hub passes on, on the connection of its own. */
function sent({ method, headers }: Exchange, { socket, url, headers: passed }: UpgradeTarget) {
  const asking = request({ createConnection: () => socket, method, path: url, setHost: false })
  const { raw } = passed.with('Connection', 'Upgrade').with('Upgrade', headers.get('upgrade') ?? '')
  for (let i = 0; i < raw.length; i += 2) asking.appendHeader(raw[i] ?? '', raw[i + 1] ?? '')
  asking.end()
  return asking
}

/**
 * Passes the answer on to the client, and from a 101 on the bytes of both ends. `head`: what the
 * client has sent after its request.
 */
function join(
  socket: Duplex,
  head: Buffer,
  asking: ReturnType<typeof sent>,
  tell: (status: number) => void,
): void {
  asking.on('error', () => breakOff(socket))
  asking.once('response', (response: IncomingMessage) => {
    tell(response.statusCode ?? 0)
    passRefusal(response, socket)
  })
  asking.once('upgrade', (response: IncomingMessage, upstream: Duplex, first: Buffer) => {
    tell(101)
    upstream.on('error', () => breakOff(socket))
    const headers = new HeaderList(response.rawHeaders)
    socket.write(rawHead(101, 'Switching Protocols', headers), 'latin1')
    socket.write(first)
    upstream.write(head)
    upstream.pipe(socket).pipe(upstream)
  })
}

/**
 * A server that does not upgrade says why in an ordinary answer, by which clients choose the next
 * protocol to try. The hub passes it on unchanged; it ends with the connection.
 */
function passRefusal(response: IncomingMessage, socket: Duplex): void {
  const { statusCode = 0, statusMessage = '', rawHeaders } = response
  const headers = new HeaderList(rawHeaders).without((name) => ofFraming.has(name))
  socket.write(rawHead(statusCode, statusMessage, headers.with('Connection', 'close')), 'latin1')
  response.pipe(socket)
  socket.once('finish', () => afterUnlessClosed(socket, lingerMs, () => socket.destroy()))
  response.once('close', () => {
    if (!response.complete) breakOff(socket)
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
