import { constants } from 'node:crypto'
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer, type AddressInfo, type Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { sleep } from '../base/clock.ts'
import { resetSocket } from '../base/reset-socket.ts'
import { clientAnchors } from '../certificates/bundle.ts'
import { internalError, serviceUnavailable, timeout, type Status } from '../api/kube/status.ts'
import { sendStatus } from './answer.ts'
import { answer } from './api.ts'
import { certificateUser } from './authentication.ts'
import type { Api } from './call.ts'
import type { Fault, Faults } from './faults.ts'
import { plainJson } from './negotiation.ts'
import { ResponseWriter } from './response-writer.ts'
import type { Requests, SeenRequest } from './requests.ts'
import type { View } from './storage.ts'
import { answerUpgrade } from './upgrade.ts'

export interface ServingIdentity {
  readonly certificate: string
  readonly key: string
  /** The CA of client certificates. */
  readonly clientCa: string
}

export interface EndpointOptions {
  readonly api: Api
  readonly view: View
  readonly faults: Faults
  readonly requests: Requests
  readonly host: string
  readonly port: number
  /** Absent: plain HTTP. */
  readonly identity?: ServingIdentity
}

/** One address at which the API is served. */
export class Endpoint implements AsyncDisposable {
  readonly #options: EndpointOptions
  readonly #web: Server
  readonly #connections = new Set<Socket>()
  readonly #numbers = new WeakMap<Duplex, number>()
  readonly #held: Socket[] = []
  readonly #following: Disposable
  #listener: NetServer | undefined
  #port: number
  #accepted = 0

  constructor(options: EndpointOptions) {
    this.#options = options
    this.#port = options.port
    this.#web = webServer(options.identity)
    this.#web.on('request', (request, response) => void this.#serve(request, response))
    this.#web.on('upgrade', (request, socket, head) => void this.#upgrade(request, socket, head))
    this.#web.on('connection', (socket: Duplex) => this.#number(socket))
    this.#web.on('secureConnection', (socket: Duplex) => this.#number(socket))
    this.#following = options.faults.follow(() => this.#release())
  }

  get url(): string {
    const scheme = this.#options.identity ? 'https' : 'http'
    return `${scheme}://${this.#options.host}:${this.#port}`
  }

  get port(): number {
    return this.#port
  }

  get faults(): Faults {
    return this.#options.faults
  }

  /** On the port it had before, if it had one. */
  async open(): Promise<void> {
    const listener = createServer((socket) => this.#accept(socket))
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject)
      listener.listen(this.#port, this.#options.host, resolve)
    })
    this.#port = (listener.address() as AddressInfo).port
    this.#listener = listener
  }

  /** Takes no connections and closes those there are, as if the process had ended. */
  async close(): Promise<void> {
    const listener = this.#listener
    this.#listener = undefined
    const closed = listener && new Promise((resolve) => listener.close(resolve))
    for (const socket of this.#connections) socket.destroy()
    await closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#following[Symbol.dispose]()
    await this.close()
  }

  reset(): void {
    for (const socket of this.#connections) resetSocket(socket)
  }

  #accept(socket: Socket): void {
    socket.setNoDelay(true)
    socket.on('error', () => socket.destroy())
    this.#connections.add(socket)
    socket.once('close', () => this.#connections.delete(socket))
    const faults = this.#options.faults.striking()
    if (faults.some(({ kind }) => kind === 'reset')) resetSocket(socket)
    else if (faults.some(({ kind }) => kind === 'freeze')) this.#held.push(socket)
    else this.#web.emit('connection', socket)
  }

  #release(): void {
    if (this.#options.faults.isFrozen()) return
    for (const socket of this.#held.splice(0)) {
      if (!socket.destroyed) this.#web.emit('connection', socket)
    }
  }

  #number(socket: Duplex): void {
    this.#accepted++
    this.#numbers.set(socket, this.#accepted)
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { api, view, faults } = this.#options
    const { seen, over } = this.#see(request)
    response.once('close', () => over.abort())
    response.on('error', () => response.destroy())
    const writer = new ResponseWriter(response, seen, faults)
    for (const fault of faults.striking(seen)) {
      if (fault.kind === 'delay') await sleep(fault.ms, seen.over)
      else if (fault.kind === 'reset') resetConnection(request)
      else if (fault.kind === 'fail') {
        await drain(request)
        fail(writer, seen, fault)
      }
    }
    if (!writer.isOpen || writer.started) return
    await answer(api, request, seen, writer, view, certificateUser(request.socket))
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { api, faults } = this.#options
    const { seen, over } = this.#see(request)
    socket.once('close', () => over.abort())
    socket.on('error', () => socket.destroy())
    for (const fault of faults.striking(seen)) {
      if (fault.kind === 'delay') await sleep(fault.ms, seen.over)
      else if (fault.kind === 'reset') resetConnection(request)
    }
    if (socket.destroyed) return
    answerUpgrade(api, { request, seen, socket, head }, certificateUser(request.socket))
  }

  #see(request: IncomingMessage): { seen: SeenRequest; over: AbortController } {
    const url = request.url ?? '/'
    const mark = url.indexOf('?')
    const over = new AbortController()
    const shown = certificateUser(request.socket)
    const seen: SeenRequest = {
      method: request.method ?? '',
      url,
      path: mark < 0 ? url : url.slice(0, mark),
      query: new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)),
      headers: request.headers,
      rawHeaders: request.rawHeaders,
      clientCertificate: shown?.name,
      user: undefined,
      resource: undefined,
      connection: this.#numbers.get(request.socket) ?? 0,
      over: over.signal,
    }
    this.#options.requests.add(seen)
    return { seen, over }
  }
}

function webServer(identity: ServingIdentity | undefined): Server {
  const settings = {
    maxHeaderSize: 1024 * 1024,
    // As Go's server: idle connections last, and nothing but the client ends a request.
    keepAliveTimeout: 180_000,
    requestTimeout: 0,
    headersTimeout: 32_000,
  }
  if (!identity) return createHttpServer(settings)
  return createHttpsServer({
    ...settings,
    cert: identity.certificate,
    key: identity.key,
    ca: clientAnchors(identity.clientCa),
    requestCert: true,
    rejectUnauthorized: false,
    // A certificate that is presented later would not be verified.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ALPNProtocols: ['http/1.1'],
  })
}

function resetConnection(request: IncomingMessage): void {
  const socket = request.socket as Socket & { _parent?: Socket }
  const raw = socket._parent ?? socket
  if (typeof raw.resetAndDestroy === 'function') resetSocket(raw)
  socket.destroy()
}

async function drain(request: IncomingMessage): Promise<void> {
  for await (const _ of request) continue
}

function fail(
  writer: ResponseWriter,
  seen: SeenRequest,
  { status, marked }: Extract<Fault, { kind: 'fail' }>,
): void {
  if (marked) {
    sendStatus({ seen, writer }, failureOf(status), plainJson(seen))
    return
  }
  const page = `<html><body><h1>${status}</h1>No server is available to handle this request.</body></html>\n`
  writer.head(status, ['Content-Type', 'text/html', 'Content-Length', String(page.length)])
  writer.end(Buffer.from(page))
}

function failureOf(code: number): Status {
  const message = 'the server is out of order'
  if (code === 503) return serviceUnavailable(message)
  if (code === 504) return timeout(message)
  return { ...internalError(message), code }
}
