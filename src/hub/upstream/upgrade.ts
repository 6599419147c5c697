import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { onAbort } from '../../base/abort.ts'
import { after, elapsed, afterUnlessClosed } from '../../base/clock.ts'
import { request } from '../../base/node-http.ts'
import type { OpenList } from '../../base/open-list.ts'
import { resetSocket } from '../../base/reset-socket.ts'
import type { Connections } from '../../http/client/connections.ts'
import { closingHead, headOf } from '../../http/exchange/closing-head.ts'
import type { BytesReply, Exchange, UpgradeReply } from '../../http/exchange/exchange.ts'
import { HeaderList } from '../../http/exchange/headers.ts'
import type { Cloud } from './cloud.ts'
import { attemptSpan, endAttempt, Unreachable, outgoingHeaders } from './forward.ts'
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
  /** Whether the API server is starting: see `BytesReply`. */
  readonly isStarting?: () => boolean
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
      answered: (status) => endAttempt(span, status),
      from: 'cloud',
      underWay: upstream.underWay,
      received: () => upstream.received(),
      isStarting: () => upstream.isStarting,
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
    const { promise: finalHead, resolve: tellHead } = Promise.withResolvers<AnswerHead>()
    void answered.then(target.answered)
    return {
      kind: 'upgrade',
      from: target.from,
      explanation: { upstream: origin },
      finalStatus: answered,
      finalHead,
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
        if (head.byteLength > 0) socket.unshift(head)
        join(exchange, socket, target, (answer) => {
          tell(answer.status)
          tellHead({ ...answer, ...(target.isStarting?.() && { isStarting: true }) })
        })
      },
    }
  }
}

/** The head of the answer to an upgrade. */
type AnswerHead = Pick<BytesReply, 'status' | 'headers' | 'isStarting'>

/** Sends the request, and passes its answer and all that follows to the client. */
function join(
  { method, headers: requested }: Exchange,
  client: Duplex,
  { socket, url, headers }: UpgradeTarget,
  onAnswer: (head: AnswerHead) => void,
): void {
  const lengthless = method === 'GET' || headers.has('content-length')
  const sent = lengthless ? headers : headers.with('Content-Length', '0')
  const sending = request({
    createConnection: () => socket,
    method,
    path: url,
    headers: sent.with('Connection', 'Upgrade').with('Upgrade', requested.get('upgrade') ?? '').raw,
  })
  sending.once('error', () => breakOff(client))
  sending.once('upgrade', ({ statusMessage, rawHeaders }, _socket, early) => {
    const received = new HeaderList(rawHeaders)
    onAnswer({ status: 101, headers: received })
    client.write(headOf(101, statusMessage ?? '', received), 'latin1')
    if (early.byteLength > 0) client.write(early)
    socket.on('error', () => breakOff(client))
    socket.pipe(client).pipe(socket)
  })
  // A server that does not upgrade says why in an ordinary answer, by which clients choose the next
  // protocol to try. It is passed on unchanged.
  sending.once('response', (response) => {
    const { statusCode: status = 0, statusMessage = '' } = response
    const received = new HeaderList(response.rawHeaders)
    onAnswer({ status, headers: received })
    const passed = received.without((name) => ofFraming.has(name))
    client.write(closingHead(status, statusMessage, passed), 'latin1')
    response.pipe(client)
    client.once('finish', () => afterUnlessClosed(client, lingerMs, () => client.destroy()))
    response.once('close', () => {
      if (!response.complete) breakOff(client)
    })
  })
  sending.end()
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
