import { once } from 'node:events'
import { connect as connectPlain } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import { after } from '../../src/base/clock.ts'
import { valuesOf, Wire, type Answer } from '../kit/wire/wire.ts'
import type { Asking } from './asking.ts'
import { messageOf, type Sender } from './message.ts'

/** A way to an API server: straight, or through a hub. */
export interface Door extends Sender {
  readonly name: string
  /** Whether a request can be asked in the protocol that is spoken here. */
  speaks(asking: Asking): boolean
  /** The answer; `undefined` where the connection is closed without one. */
  ask(asking: Asking): Promise<Heard | undefined>
  /** Why the last request without an answer had none. */
  readonly failure?: unknown
  /** Lets go of what is kept for the next request. */
  close(): void
}

/** An answer, and the codes of the interim ones before it. */
export interface Heard extends Answer {
  readonly interim: readonly number[]
}

export interface DoorOptions {
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
export function http1Door({ name, url, agent, namespace, tls }: DoorOptions): Door {
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
    speaks: () => true,
    get failure() {
      return failure
    },
    ask: async (asking) => {
      const shown = shownBy(asking, tls)
      const isOrdinary = shown === tls && asking.raw === undefined && !concernsConnection(asking)
      const wire = (isOrdinary ? idle.pop() : undefined) ?? (await dial(shown))
      using _patience = after(patienceMs, () => wire.destroy())
      wire.write(messageOf(asking, sender))
      const answer = await heard(wire, asking).catch((cause: unknown) => {
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

const concernsConnection = ({ method, headers = {} }: Asking): boolean =>
  method === 'CONNECT' ||
  Object.keys(headers).some((name) => /^(connection|expect|host|upgrade)$/i.test(name))

const keepsOn = (answer: Heard): boolean =>
  answer.status !== 101 &&
  fieldOf(answer, 'connection')?.toLowerCase() !== 'close' &&
  (answer.status === 304 ||
    fieldOf(answer, 'content-length') !== undefined ||
    fieldOf(answer, 'transfer-encoding') !== undefined)

/** A certificate would win over the token that a caller brings instead. */
export function shownBy(
  { headers }: Asking,
  tls: ConnectionOptions | undefined,
): ConnectionOptions | undefined {
  if (headers?.['Authorization'] === undefined) return tls
  const { cert: _cert, key: _key, ...rest } = tls ?? {}
  return rest
}

/** Rejects where the connection is closed without an answer. */
async function heard(wire: Wire, asking: Asking): Promise<Heard> {
  const method = asking.raw?.slice(0, asking.raw.indexOf(' ')) ?? asking.method ?? 'GET'
  const interim: number[] = []
  for (;;) {
    const answer = await wire.answer(method)
    // A connection that has changed its protocol has no more answers.
    if (answer.status >= 200 || answer.status === 101) return { ...answer, interim }
    interim.push(answer.status)
  }
}

export const fieldOf = (heard: Heard, name: string): string | undefined => valuesOf(heard, name)[0]
