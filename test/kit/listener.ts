import type { AbortSignalLike } from '../../src/base/abort.ts'
import type { Incoming, Sink, WireReply } from '../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../src/http/exchange/headers.ts'
import { listen, type ListenerOptions, type Listener } from '../../src/http/server/listener.ts'
import { dial, type Wire, type Teardown } from './wire/wire.ts'

/** A whole answer. */
export const wholeReply = (body: string, ...headers: string[]): WireReply => ({
  kind: 'body',
  from: 'hub',
  status: 200,
  headers: new HeaderList([...headers, 'Content-Length', String(body.length)]),
  body: Buffer.from(body, 'latin1'),
})

/** An answer whose bytes the test writes. */
export const scriptedReply = (
  drive: (sink: Sink) => (() => void) | void,
  ...headers: string[]
): WireReply => ({
  kind: 'bytes',
  from: 'cloud',
  status: 200,
  headers: new HeaderList(headers),
  source: (sink) => drive(sink) ?? (() => undefined),
})

export interface TestListener {
  readonly listener: Listener
  readonly seen: readonly Incoming[]
  readonly broken: readonly unknown[]
  readonly cuts: readonly string[]
  readonly dial: () => Promise<Wire>
}

/** A listener whose answers are those of `handler`; it is closed with the test. */
export async function startListener(
  t: Teardown,
  handler: ListenerOptions['handler'],
  options: Partial<ListenerOptions> = {},
): Promise<TestListener> {
  const cuts: string[] = []
  const seen: Incoming[] = []
  const broken: unknown[] = []
  const listener = await listen({
    at: [{ host: '127.0.0.1', port: 0 }],
    maxConnections: 100,
    onBroken: (cause) => broken.push(cause),
    onCut: (why) => cuts.push(why),
    ...options,
    handler: (incoming) => {
      seen.push(incoming)
      return handler(incoming)
    },
  })
  t.teardown(() => listener.close(0))
  return { listener, seen, broken, cuts, dial: () => dial(t, listener.port) }
}

/** The same handler, for callers who are proven to be the node, or another. */
export const provenAs =
  (handler: ListenerOptions['handler'], isNode = true): ListenerOptions['handler'] =>
  (incoming) => {
    incoming.onProven?.(isNode)
    return handler(incoming)
  }

/** The head of a GET. */
export const get = (path = '/', ...fields: string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: hub', ...fields, '', ''].join('\r\n')

/** The head of a GET with an upgrade. */
export const upgrading = get('/', 'Connection: Upgrade', 'Upgrade: SPDY/3.1')

/** Resolves with the reason when `signal` aborts. */
export const aborted = (signal: AbortSignalLike): Promise<unknown> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason)
    else signal.addEventListener('abort', () => resolve(signal.reason), { once: true })
  })

/** The body of a request. */
export async function textOf(incoming: Incoming): Promise<string> {
  let text = ''
  for await (const chunk of incoming.body ?? []) text += (chunk as Buffer).toString('latin1')
  return text
}
