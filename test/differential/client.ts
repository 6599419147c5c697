import { once } from 'node:events'
import { connect as connectPlain } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import { after } from '../../src/base/clock.ts'
import { valuesOf, Wire, type Answer } from '../kit/wire/wire.ts'
import type { RequestCase } from './request-case.ts'
import { messageOf, type Sender } from './message.ts'

/** Sends requests to an API server: directly, or through a hub. */
export interface Client extends Sender {
  readonly name: string
  /** Whether the client's protocol can express the request. */
  supports(request: RequestCase): boolean
  /** The answer; `undefined` where the connection is closed without one. */
  ask(request: RequestCase): Promise<RawResponse | undefined>
  /** Why the last request without an answer had none. */
  readonly failure?: unknown
  /** Releases idle connections. */
  close(): void
}

/** An answer, and the codes of the interim ones before it. */
export interface RawResponse extends Answer {
  readonly interim: readonly number[]
}

export interface ClientOptions {
  readonly name: string
  readonly url: string
  readonly agent: string
  readonly namespace: string
  readonly tls?: ConnectionOptions
}

/**
 * Longer than any answer takes, so that a test fails with the name of the request that has none.
 */
export const patienceMs = 25_000

/**
 * HTTP/1.1, byte by byte. Ordinary requests follow each other on connections that are kept; any
 * other has one of its own.
 */
export function http1Client({ name, url, agent, namespace, tls }: ClientOptions): Client {
  const { host, hostname, port, protocol } = new URL(url)
  const sender: Sender = { host, agent, namespace }
  const idle: Wire[] = []
  let failure: unknown
  const dial = async (shown: ConnectionOptions | undefined): Promise<Wire> => {
    const address = { host: hostname, port: Number(port) }
    const secure = protocol === 'https:'
    const socket = secure
      ? connectTls({ ...address, ALPNProtocols: ['http/1.1'], ...shown })
      : connectPlain({ ...address, noDelay: true })
    const wire = new Wire(socket)
    void wire.ended.then(() => idle.includes(wire) && idle.splice(idle.indexOf(wire), 1))
    await once(socket, secure ? 'secureConnect' : 'connect')
    return wire
  }
  return {
    name,
    ...sender,
    supports: () => true,
    get failure() {
      return failure
    },
    ask: async (request) => {
      const shown = shownBy(request, tls)
      const isOrdinary = shown === tls && request.raw === undefined && !concernsConnection(request)
      const wire = (isOrdinary ? idle.pop() : undefined) ?? (await dial(shown))
      using _patience = after(patienceMs, () => wire.destroy())
      wire.write(messageOf(request, sender))
      const answer = await readResponse(wire, request).catch((cause: unknown) => {
        failure = cause
        return undefined
      })
      if (isOrdinary && answer !== undefined && keepsOn(answer)) idle.push(wire)
      else wire.destroy()
      return answer
    },
    close: () => {
      for (const wire of idle) wire.destroy()
    },
  }
}

const concernsConnection = ({ method, headers = {} }: RequestCase): boolean =>
  method === 'CONNECT' ||
  Object.keys(headers).some((name) => /^(connection|expect|host|upgrade)$/i.test(name))

const keepsOn = (answer: RawResponse): boolean =>
  answer.status !== 101 &&
  fieldOf(answer, 'connection')?.toLowerCase() !== 'close' &&
  (answer.status === 304 ||
    fieldOf(answer, 'content-length') !== undefined ||
    fieldOf(answer, 'transfer-encoding') !== undefined)

/** A certificate would win over the token that a caller brings instead. */
export function shownBy(
  { headers }: RequestCase,
  tls: ConnectionOptions | undefined,
): ConnectionOptions | undefined {
  if (headers?.['Authorization'] === undefined) return tls
  const { cert: _cert, key: _key, ...rest } = tls ?? {}
  return rest
}

/** Rejects where the connection is closed without an answer. */
async function readResponse(wire: Wire, request: RequestCase): Promise<RawResponse> {
  const method = request.raw?.slice(0, request.raw.indexOf(' ')) ?? request.method ?? 'GET'
  const interim: number[] = []
  for (;;) {
    const answer = await wire.answer(method)
    // A connection that has changed its protocol has no more answers.
    if (answer.status >= 200 || answer.status === 101) return { ...answer, interim }
    interim.push(answer.status)
  }
}

export const fieldOf = (response: RawResponse, name: string): string | undefined =>
  valuesOf(response, name)[0]
