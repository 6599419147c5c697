import type { Http2Session } from 'node:http2'
import type { Dispatcher } from 'undici'
import { Connections } from '../../../src/http/client/connections.ts'
import {
  defaultTimings,
  type ConnectionTimings,
} from '../../../src/http/client/connection-timings.ts'
import type { Credential } from '../../../src/http/exchange/exchange.ts'
import { authority, type Pair } from '../../kit/wire/certificates.ts'
import { h2Upstream, type H2Options, type H2Upstream } from '../../kit/wire/h2-upstream.ts'
import type { Teardown } from '../../kit/wire/wire.ts'
import { Condition } from '../../kit/condition.ts'

export const pki = await authority()
export const serving = await pki.server()
const first = await pki.client('first-node')
export const second = await pki.client('second-node')

/**
 * Connections that end with the test; with the certificate of a first node unless another is named.
 */
export function connectionsOf(
  t: Teardown,
  pace: Partial<ConnectionTimings> = {},
  pair: Pair = first,
): Connections {
  const connections = new Connections(pki.credentials(pair), { ...defaultTimings, ...pace })
  t.teardown(() => connections[Symbol.asyncDispose]())
  return connections
}

/** A server that requests certificates of the authority. */
export const upstreamOf = (t: Teardown, options: Partial<H2Options> = {}): Promise<H2Upstream> =>
  h2Upstream(t, { ...serving, ca: pki.ca, ...options })

/** How many connections are open: of HTTP/1.1, and of HTTP/2. */
export const opened = (connections: Connections, { origin }: H2Upstream): number[] =>
  (['http/1.1', 'h2'] as const).map((protocol) => connections.open(origin, protocol))

/** A watch as its asker sees it. */
export class Watch implements Dispatcher.DispatchHandler {
  controller: Dispatcher.DispatchController | undefined
  fields: string[] = []
  body = ''
  readonly head = Promise.withResolvers<number>()
  readonly over = Promise.withResolvers<'end' | NodeJS.ErrnoException>()
  readonly #grown = new Condition()

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    this.fields = controller.rawHeaders as string[]
    this.head.resolve(status)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.body += chunk.toString()
    this.#grown.changed()
  }

  onResponseEnd(): void {
    this.over.resolve('end')
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.over.resolve(error)
  }

  /** Resolves when so much has come. */
  async until(length: number): Promise<void> {
    await this.#grown.until(() => this.body.length >= length)
  }

  async code(): Promise<string | undefined> {
    const outcome = await this.over.promise
    return outcome === 'end' ? outcome : outcome.code
  }
}

/** Opens a watch, with the node's credentials unless others are named. */
export const watch = (
  connections: Connections,
  origin: string,
  { credential = 'node', headers = [] }: { credential?: Credential; headers?: string[] } = {},
): Watch => {
  const watch = new Watch()
  const request = { method: 'GET', path: '/watch?a=b', headers, body: null, isWatch: true } as const
  connections.dispatch(credential, origin, request, watch)
  return watch
}

/** The answer to a short request. */
export async function shortly(connections: Connections, { origin }: H2Upstream): Promise<string> {
  const asked = new Watch()
  connections.dispatch('node', origin, { method: 'GET', path: '/', headers: [], body: null }, asked)
  await asked.over.promise
  return asked.body
}

/** A watch that the server has answered with its head and one event. */
export async function running(connections: Connections, upstream: H2Upstream) {
  const asked = watch(connections, upstream.origin)
  const { stream, session } = await upstream.next()
  stream.respond({ ':status': 200 })
  stream.write('event')
  await asked.until(5)
  return { asked, stream, session }
}

export const pong = (session: Http2Session): Promise<void> =>
  new Promise((resolve) => void session.ping(() => resolve()))

/** A server and connections to it. */
export async function connected(
  t: Teardown,
  pace?: Partial<ConnectionTimings>,
): Promise<{ readonly upstream: H2Upstream; readonly connections: Connections }> {
  return { upstream: await upstreamOf(t), connections: connectionsOf(t, pace) }
}
