import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { Dispatcher } from 'undici'
import { onAbort } from '../../base/abort.ts'
import { inodeOfSocket } from '../../base/socket-table.ts'
import {
  badRequest,
  internalError,
  serviceUnavailable,
  StatusError,
} from '../../api/kube/status.ts'
import type { Credentials } from '../../config/credentials.ts'
import { connectMs, handshakeMs } from '../../http/client/dial.ts'
import { connected, keepAliveProbeMs } from '../../http/client/tcp.ts'
import { http1Options } from '../../http/client/server-connections.ts'
import { undici } from '../../http/client/undici.ts'
import type { BytesReply, Exchange, Peer, UpgradeReply } from '../../http/exchange/exchange.ts'
import { endToEnd, HeaderList } from '../../http/exchange/headers.ts'
import type { Kubelet } from '../answers/at-kubelet.ts'
import { outgoingHeaders } from './forward.ts'
import { upgraderTo, type UpgradeTarget } from './upgrade.ts'
import { rawStrings, UpstreamBody, type BodyReader } from './upstream-body.ts'

export interface OwnKubeletParts {
  /** The hub's own, by whose certificate the kubelet knows it. */
  readonly credentials: () => Credentials
  /** Where the kubelet may listen on this machine, the most likely first. */
  readonly addresses: () => readonly { readonly host: string; readonly port: number }[]
  /** Whether root holds the other end of a connection within this machine. */
  readonly isRoots: (peer: Peer) => Promise<boolean>
}

/** A refusal of the kubelet is a line of text. */
const longestRefusal = 4096

/**
 * The kubelet of this node. It vouches for its serving certificate itself, so that the hub
 * identifies it by the kernel's socket table: it sends requests only to a socket of root.
 */
export class OwnKubelet implements Kubelet {
  readonly #parts: OwnKubeletParts

  constructor(parts: OwnKubeletParts) {
    this.#parts = parts
  }

  async get(exchange: Exchange, url: string): Promise<BytesReply> {
    const { socket, origin } = await this.#connect()
    const client = new undici.Client(origin, {
      ...http1Options,
      connect: (_options, callback) => queueMicrotask(() => callback(null, socket)),
    })
    const headers = [...kubeletHeaders(exchange, origin).raw]
    return new Promise((resolve, reject) => {
      const answer = new KubeletAnswer(exchange, client, resolve, reject)
      client.dispatch({ method: 'GET', path: url, headers }, answer)
    })
  }

  upgrade(exchange: Exchange, url: string): Promise<UpgradeReply> {
    return upgraderTo(async (): Promise<UpgradeTarget> => {
      const { socket, origin } = await this.#connect()
      return { socket, origin, url, headers: kubeletHeaders(exchange, origin), from: 'hub' }
    })(exchange)
  }

  /** Connects to the first address at which root serves. */
  async #connect(): Promise<{ socket: TLSSocket; origin: string }> {
    const { certificate } = this.#parts.credentials()
    if (!certificate) throw new StatusError(serviceUnavailable(withoutCertificate))
    const failures: string[] = []
    for (const { host, port } of this.#parts.addresses()) {
      const origin = `https://${host.includes(':') ? `[${host}]` : host}:${port}`
      try {
        const dialled = connectPlain({ host, port, allowHalfOpen: true })
        const plain = await connected(dialled, 'connect', origin, connectMs)
        plain.setKeepAlive(true, keepAliveProbeMs)
        const peer = peerOf(plain)
        const options = { socket: plain, cert: certificate.chain, key: certificate.key.reveal() }
        const socket = await connected(
          connectTls({ ...options, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] }),
          'secureConnect',
          origin,
          handshakeMs,
        )
        // The handshake has shown that the other process has accepted the connection.
        if (await this.#parts.isRoots(peer)) return { socket, origin }
        socket.destroy()
        failures.push(`${origin}: it is not root who serves there`)
      } catch (error) {
        failures.push(`${origin}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    throw new StatusError(serviceUnavailable(unreachable(failures)))
  }
}

const withoutCertificate =
  'the cloud cannot be reached, and the hub has no certificate to show to the kubelet'

const unreachable = (failures: readonly string[]): string =>
  `the cloud cannot be reached, and neither can the kubelet of this node (${failures.join('; ') || 'its address is not known'})`

/** The answer to a GET. A refusal becomes the Status into which an API server turns it. */
class KubeletAnswer implements Dispatcher.DispatchHandler, BodyReader {
  readonly #client: InstanceType<typeof undici.Client>
  readonly #resolve: (reply: BytesReply) => void
  readonly #reject: (cause: Error) => void
  readonly #body = new UpstreamBody(this)
  readonly #gone: Disposable
  #controller: Dispatcher.DispatchController | undefined
  #refusal: number | undefined

  constructor(
    { signal }: Exchange,
    client: InstanceType<typeof undici.Client>,
    resolve: (reply: BytesReply) => void,
    reject: (cause: Error) => void,
  ) {
    this.#client = client
    this.#resolve = resolve
    this.#reject = reject
    this.#gone = onAbort(signal, () => this.#controller?.abort(new Error('the client has gone')))
  }

  over(): void {
    this.#gone[Symbol.dispose]()
    void this.#client.close()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) return
    if (status !== 200) {
      this.#refusal = status
      return
    }
    this.#resolve({
      kind: 'bytes',
      from: 'hub',
      status,
      headers: endToEnd(new HeaderList(rawStrings(controller.rawHeaders))),
      source: (sink) => this.#body.attach(sink, controller),
    })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body.data(chunk, controller)
    if (this.#refusal !== undefined && this.#body.early > longestRefusal) {
      controller.abort(new Error('the refusal is too long'))
    }
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#body.end(rawStrings(controller.rawTrailers))
    if (this.#refusal !== undefined) this.#refuse(this.#refusal)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#body.fail(error)
    if (this.#refusal !== undefined) this.#refuse(this.#refusal)
    this.#reject(new StatusError(serviceUnavailable(unreachable([error.message]))))
  }

  /** As apiserver pkg/registry/generic/rest/response_checker.go. */
  #refuse(status: number): void {
    const text = (this.#body.whole ?? Buffer.alloc(0)).toString().trim()
    this.#reject(
      new StatusError(
        status === 400
          ? badRequest(text)
          : internalError(`the kubelet answered ${status}: ${text}`),
      ),
    )
  }
}

const kubeletHeaders = (exchange: Exchange, origin: string): HeaderList =>
  outgoingHeaders(exchange, new URL(origin).host, { authorization: () => undefined }, exchange.span)

/** Before TLS, which takes the descriptor over. */
const peerOf = (socket: Socket): Peer => {
  const inode = inodeOfSocket(socket)
  return {
    address: socket.remoteAddress ?? '',
    port: socket.remotePort ?? 0,
    localAddress: socket.localAddress ?? '',
    localPort: socket.localPort ?? 0,
    ...(inode !== undefined && { inode }),
  }
}
