import { isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Dispatcher } from 'undici'
import { afterAwake } from '../../base/clock.ts'
import type { Credentials } from '../../config/credentials.ts'
import type { Credential } from '../exchange/exchange.ts'
import { connectionTls, connectMs, dialer, handshakeMs, portOf } from './dial.ts'
import { connected, tcpConnection } from './tcp.ts'
import {
  http1Options,
  ServerConnections,
  type Protocol,
  type UpstreamRequest,
} from './server-connections.ts'
import { explainTlsFailure } from './tls-failure.ts'
import { defaultTimings, type ConnectionTimings } from './connection-timings.ts'
import { undici } from './undici.ts'

class NoAnswerInTime extends Error {
  readonly code = 'ERR_NO_ANSWER'
  constructor(origin: string, withinMs: number) {
    super(`no answer from ${origin} within ${withinMs} ms`)
  }
}

/**
 * The hub's connections to its upstreams, in two sets: with the node's certificate, and without
 * one, for callers that send a token of their own. An API server uses a certificate before a token,
 * so the two must never share a connection.
 */
export class Connections implements AsyncDisposable {
  #node: CredentialSet
  #caller: CredentialSet
  readonly #retired = new Set<CredentialSet>()
  readonly #build: (credentials: Credentials) => CredentialSet

  constructor(credentials: Credentials, timings: ConnectionTimings = defaultTimings) {
    this.#build = (some) => new CredentialSet(some, timings)
    this.#node = this.#build(credentials)
    this.#caller = this.#build(withoutIdentity(credentials))
  }

  /** Sends new requests with these credentials; requests in flight keep their connections. */
  replaceCredentials(credentials: Credentials): void {
    for (const old of [this.#node, this.#caller]) {
      this.#retired.add(old)
      void old.retire().then(() => this.#retired.delete(old))
    }
    this.#node = this.#build(credentials)
    this.#caller = this.#build(withoutIdentity(credentials))
  }

  /**
   * Sends a request, and calls `handler` with its answer. A watch uses HTTP/2 where the server
   * offers it.
   */
  dispatch(
    credential: Credential,
    origin: string,
    request: UpstreamRequest,
    handler: Dispatcher.DispatchHandler,
  ): void {
    this.#credentialSet(credential).server(origin).dispatch(request, handler)
  }

  /** The node's credentials. */
  get credentials(): Credentials {
    return this.#node.credentials
  }

  /** The number of open connections to an upstream, without those of upgrades and probes. */
  open(origin: string, protocol?: Protocol): number {
    return [this.#node, this.#caller, ...this.#retired].reduce(
      (sum, set) => sum + set.open(origin, protocol),
      0,
    )
  }

  /** The node's bearer token, where it has one instead of a certificate. */
  authorization(credential: Credential): string | undefined {
    const token = this.#credentialSet(credential).credentials.token?.reveal()
    return token === undefined ? undefined : `Bearer ${token}`
  }

  /** Opens a connection for one upgrade only. */
  async connect(credential: Credential, origin: string): Promise<Socket> {
    const { protocol, hostname, port: named } = new URL(origin)
    const host = hostname.replace(/^\[|\]$/g, '')
    const port = portOf(protocol, named)
    // Either end of a tunnel may close its half first.
    const socket = await tcpConnection({ host, port, limitMs: connectMs, allowHalfOpen: true })
    if (protocol !== 'https:') return socket
    const secure = connectTls({
      socket,
      host,
      ...(isIP(host) === 0 && { servername: host }),
      ...connectionTls(this.#credentialSet(credential).credentials),
      ALPNProtocols: ['http/1.1'],
    })
    return connected(secure, 'secureConnect', origin, handshakeMs)
  }

  /**
   * Sends GETs over one new connection with the node's credentials, each once the one before was
   * answered 200, and resolves to their statuses. The lookup, TCP, the TLS handshake (twice as
   * long) and each answer may each take `withinMs`, the answer of waking time, however slowly it
   * arrives. Rejects where no head of the first has arrived by then, with a message for the
   * operator where TLS failed.
   */
  async probe(
    origin: string,
    paths: readonly string[],
    withinMs: number,
  ): Promise<readonly (number | 'late' | 'broken')[]> {
    const { credentials } = this.#node
    const client = new undici.Client(origin, {
      ...http1Options,
      connect: dialer(credentials, 'http/1.1', withinMs),
    })
    const authorization = this.authorization('node')
    const headers = authorization === undefined ? {} : { authorization }
    const late = (): void => void client.destroy(new NoAnswerInTime(origin, withinMs))
    const statuses: (number | 'late' | 'broken')[] = []
    try {
      for (const path of paths) {
        let patience: Disposable | undefined
        const sent = (): void => void (patience ??= afterAwake(withinMs, late))
        const status = await statusOf(client, { method: 'GET', path, headers }, sent)
          .catch((cause: unknown) => {
            if (statuses.length === 0) throw cause
            return cause instanceof NoAnswerInTime ? 'late' : 'broken'
          })
          .finally(() => patience?.[Symbol.dispose]())
        statuses.push(status)
        if (status !== 200) break
      }
      return statuses
    } catch (cause) {
      throw explainTlsFailure(cause, origin, credentials)
    } finally {
      await client.destroy()
    }
  }

  /**
   * Closes the connections to an upstream that failed or was removed. Requests on them fail, and
   * watches end.
   */
  drop(origin: string): void {
    for (const set of [this.#node, this.#caller, ...this.#retired]) set.drop(origin)
  }

  #credentialSet(credential: Credential): CredentialSet {
    return credential === 'node' ? this.#node : this.#caller
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#node, this.#caller, ...this.#retired].map((set) => set.destroy()))
  }
}

/** The status of an answer, once its end or an error after its head has arrived. */
const statusOf = (
  client: Dispatcher,
  request: Dispatcher.DispatchOptions,
  onSent: () => void,
): Promise<number> =>
  new Promise((resolve, reject) => {
    let status: number | undefined
    client.dispatch(request, {
      onRequestStart: onSent,
      onResponseStart: (_controller, code) => {
        if (code >= 200) status = code
      },
      onResponseData: () => undefined,
      onResponseEnd: () => resolve(status ?? 0),
      onResponseError: (_controller, cause) => {
        if (status === undefined) reject(cause)
        else resolve(status)
      },
    })
  })

/** What a caller's connection needs to verify the upstream, without the node's identity. */
const withoutIdentity = ({ ca, serverName }: Credentials): Credentials => ({
  ...(ca !== undefined && { ca }),
  ...(serverName !== undefined && { serverName }),
  files: [],
})

/**
 * The connections that use one set of credentials. They share neither connections nor TLS sessions
 * with other sets.
 */
export class CredentialSet {
  readonly credentials: Credentials
  readonly #servers = new Map<string, ServerConnections>()
  readonly #timings: ConnectionTimings

  constructor(credentials: Credentials, timings: ConnectionTimings) {
    this.credentials = credentials
    this.#timings = timings
  }

  server(origin: string): ServerConnections {
    const known = this.#servers.get(origin)
    if (known) return known
    const server = new ServerConnections(origin, this.credentials, this.#timings)
    this.#servers.set(origin, server)
    return server
  }

  open(origin: string, protocol?: Protocol): number {
    return this.#servers.get(origin)?.open(protocol) ?? 0
  }

  /** Takes no more requests; resolves when those in flight, watches included, are over. */
  async retire(): Promise<void> {
    await Promise.allSettled([...this.#servers.values()].map((server) => server.retire()))
  }

  drop(origin: string): void {
    void this.#servers.get(origin)?.destroy()
    this.#servers.delete(origin)
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.destroy()))
  }
}
