import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Client, Pool, type Dispatcher } from 'undici'
import { after } from '../base/clock.ts'
import type { Credentials } from '../config/credentials.ts'
import type { Credential } from '../exchange/exchange.ts'

/** TCP's own probes, below the time after which NATs forget an idle connection (a minute and up). */
const keepAliveProbeMs = 30_000

const connectMs = 5_000

/** Below the 90 s and more for which API servers keep an idle connection, so that we close first. */
const idleMs = 55_000

/** The part of TLS options that credentials decide. */
const tls = ({ ca, certificate, serverName }: Credentials): TlsOptions => ({
  ...(ca !== undefined && { ca }),
  ...(certificate && { cert: certificate.chain, key: certificate.key.reveal() }),
  ...(serverName !== undefined && { servername: serverName }),
})

interface TlsOptions {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
}

const clientOptions = (credentials: Credentials): Pool.Options => ({
  allowH2: false,
  pipelining: 1,
  // Silence is judged by probes, not by a timer: a slow answer is not a dead server, and a watch may be silent for long.
  headersTimeout: 0,
  bodyTimeout: 0,
  keepAliveTimeout: idleMs,
  keepAliveMaxTimeout: idleMs,
  maxHeaderSize: 64 * 1024,
  connect: {
    ...tls(credentials),
    timeout: connectMs,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveProbeMs,
  },
})

class NoAnswerInTime extends Error {
  readonly code = 'ERR_NO_ANSWER'
  constructor(origin: string, withinMs: number) {
    super(`no answer from ${origin} within ${withinMs} ms`)
  }
}

/** Connections that carry one credential. Another credential never shares a connection nor a TLS session with them. */
class CredentialSet {
  readonly credentials: Credentials
  readonly #pools = new Map<string, Pool>()

  constructor(credentials: Credentials) {
    this.credentials = credentials
  }

  pool(origin: string): Pool {
    const known = this.#pools.get(origin)
    if (known) return known
    const pool = new Pool(origin, clientOptions(this.credentials))
    this.#pools.set(origin, pool)
    return pool
  }

  open(origin: string): number {
    return this.#pools.get(origin)?.stats.connected ?? 0
  }

  /** No more requests; resolves when those under way, watches among them, have come to their end. */
  async retire(): Promise<void> {
    await Promise.allSettled([...this.#pools.values()].map((pool) => pool.close()))
  }

  drop(origin: string): void {
    void this.#pools.get(origin)?.destroy()
    this.#pools.delete(origin)
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()))
  }
}

/**
 * The hub's connections to its upstreams, in two sets: with the node's certificate, and without any, for callers who bring a token
 * of their own. An API server believes a certificate before it looks at a token, so the two must never meet on one connection.
 */
export class Connections implements AsyncDisposable {
  #node: CredentialSet
  #caller: CredentialSet
  readonly #retired = new Set<CredentialSet>()

  constructor(credentials: Credentials) {
    this.#node = new CredentialSet(credentials)
    this.#caller = new CredentialSet(withoutIdentity(credentials))
  }

  /** New requests go out with these; what is under way keeps its connection. */
  replaceCredentials(credentials: Credentials): void {
    for (const old of [this.#node, this.#caller]) {
      this.#retired.add(old)
      void old.retire().then(() => this.#retired.delete(old))
    }
    this.#node = new CredentialSet(credentials)
    this.#caller = new CredentialSet(withoutIdentity(credentials))
  }

  dispatch(
    credential: Credential,
    origin: string,
    options: Omit<Dispatcher.DispatchOptions, 'origin'>,
    handler: Dispatcher.DispatchHandler,
  ): void {
    const set = this.#set(credential)
    // Said again with each request: undici would go by the Host field otherwise.
    const { serverName } = set.credentials
    const named = { ...options, ...(serverName !== undefined && { servername: serverName }) }
    set.pool(origin).dispatch(named, handler)
  }

  /** The node's certificate with its chain, in PEM, where it has one. */
  get certificate(): string | undefined {
    return this.#node.credentials.certificate?.chain
  }

  /** How many connections to an upstream are open; those that serve an upgrade or a probe are not among them. */
  open(origin: string): number {
    return [this.#node, this.#caller, ...this.#retired].reduce(
      (sum, set) => sum + set.open(origin),
      0,
    )
  }

  /** The node's own bearer token, where it has one instead of a certificate. */
  authorization(credential: Credential): string | undefined {
    const token = this.#set(credential).credentials.token?.reveal()
    return token === undefined ? undefined : `Bearer ${token}`
  }

  /** A connection for one upgrade, which nothing else will use. Rejects where it is not made in time. */
  connect(credential: Credential, origin: string): Promise<Socket> {
    const { protocol, hostname, port } = new URL(origin)
    const host = hostname.replace(/^\[|\]$/g, '')
    const options = {
      host,
      port: Number(port || (protocol === 'https:' ? 443 : 80)),
      // Either end of a tunnel may be the first to have no more to say.
      allowHalfOpen: true,
    }
    const socket =
      protocol === 'https:'
        ? connectTls({
            ...options,
            ...(isIP(host) === 0 && { servername: host }),
            ...tls(this.#set(credential).credentials),
            ALPNProtocols: ['http/1.1'],
          })
        : connectPlain(options)
    socket.setKeepAlive(true, keepAliveProbeMs)
    return new Promise((resolve, reject) => {
      const patience = after(connectMs, () =>
        socket.destroy(new Error(`no connection to ${origin} within ${connectMs} ms`)),
      )
      socket.once(protocol === 'https:' ? 'secureConnect' : 'connect', () => {
        patience[Symbol.dispose]()
        resolve(socket)
      })
      socket.once('error', (error) => {
        patience[Symbol.dispose]()
        reject(error)
      })
    })
  }

  /**
   * Status of a GET over a connection made for it alone, with the node's credentials. Settles within `withinMs`, however little of an
   * answer comes at a time; rejects where there is no head by then.
   */
  async ask(origin: string, path: string, withinMs: number): Promise<number> {
    const { credentials } = this.#node
    const client = new Client(origin, {
      ...clientOptions(credentials),
      connect: { ...tls(credentials), timeout: withinMs },
    })
    const authorization = this.authorization('node')
    using _patience = after(
      withinMs,
      () => void client.destroy(new NoAnswerInTime(origin, withinMs)),
    )
    try {
      const { statusCode, body } = await client.request({
        method: 'GET',
        path,
        headers: authorization === undefined ? {} : { authorization },
      })
      await body.dump()
      return statusCode
    } finally {
      await client.destroy()
    }
  }

  /** Closes what connections there are to an upstream that failed or is no longer asked; whatever is under way on them breaks off. */
  drop(origin: string): void {
    for (const set of [this.#node, this.#caller, ...this.#retired]) set.drop(origin)
  }

  #set(credential: Credential): CredentialSet {
    return credential === 'node' ? this.#node : this.#caller
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#node, this.#caller, ...this.#retired].map((set) => set.destroy()))
  }
}

/** What a caller's connection needs to trust the upstream, and nothing that would speak for the node. */
const withoutIdentity = ({ ca, serverName }: Credentials): Credentials => ({
  ...(ca !== undefined && { ca }),
  ...(serverName !== undefined && { serverName }),
  files: [],
})
