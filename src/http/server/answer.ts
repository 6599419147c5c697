import { randomUUID } from 'node:crypto'
import { onAbort } from '../../base/abort.ts'
import type { Handler, Incoming, Sink, WireReply } from '../exchange/exchange.ts'
import type { HeaderList } from '../exchange/headers.ts'
import type { ConnectionLimit, OnCut, RequestActivity } from './connection-limit.ts'
import type { StalledAnswers } from './stalled-answers.ts'

/** What serves requests, whatever the protocol in which they come. */
export interface RequestHandling {
  readonly handler: Handler<Incoming, WireReply>
  /**
   * Called with a failure that the client cannot be told of: the answer had begun, or its
   * connection was gone.
   */
  readonly onBroken: (cause: unknown) => void
  /** Called for each connection that is closed because of what its client does or fails to do. */
  readonly onCut?: OnCut
}

/** What each protocol of a listener is given. */
export interface ListenerParts extends Required<RequestHandling> {
  readonly connections: ConnectionLimit
  readonly answers: StalledAnswers
  /** See `limits`. */
  readonly stalledMs: number
  readonly pipelined: number
}

/** One request's way back to its client. */
export interface ResponseWriter {
  /**
   * Status and fields; they go out with the first bytes, or when `flush` is called. With `last` the
   * connection takes no more requests.
   */
  writeHead(status: number, headers: HeaderList, last: boolean): void
  flush(): void
  /** The whole body. */
  end(body: Uint8Array): void
  /** For a body in parts; to be called once. */
  sink(): Sink & { started(): boolean }
}

/**
 * Lets the service answer one request that is no upgrade, and keeps `activity` informed. Rejects
 * where the service fails.
 */
export async function answer(
  incoming: Incoming,
  writer: ResponseWriter,
  { handler }: RequestHandling,
  activity: RequestActivity,
): Promise<void> {
  const { signal } = incoming
  const reply = await handler(incoming)
  if (signal.aborted) return
  if (reply.kind === 'upgrade') throw new Error('an upgrade was answered that nobody asked for')
  writer.writeHead(reply.status, reply.headers, activity.answered(reply.status))
  if (reply.kind === 'body') return writer.end(reply.body)
  if (reply.longRunning) activity.markLongRunning()
  const sink = writer.sink()
  const giveUp = reply.source(sink)
  // A watch may have nothing to say for minutes, yet its client waits for the head.
  if (!sink.started()) writer.flush()
  onAbort(signal, giveUp)
}

export const requestId = (): string => randomUUID()

/** Why a request's signal has aborted: its client hung up, or has its whole answer. */
class ClientGone extends Error {
  readonly code = 'CLIENT_GONE'
  constructor() {
    super('the client has closed its connection')
  }
}

/**
 * One instance for all requests: each ends with it, and a stack trace for each would tell nothing.
 */
export const clientGone = new ClientGone()
