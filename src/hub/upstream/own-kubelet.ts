import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { onAbort } from '../../base/abort.ts'
import { request } from '../../base/node-http.ts'
import { inodeOfSocket } from '../../base/socket-table.ts'
import {
  badRequest,
  internalError,
  serviceUnavailable,
  StatusError,
  type Status,
} from '../../api/kube/status.ts'
import type { Credentials } from '../../config/credentials.ts'
import { connectMs, handshakeMs } from '../../http/client/dial.ts'
import { connected, keepAliveProbeMs } from '../../http/client/tcp.ts'
import { sourceOf, wholeText } from '../../http/exchange/chunks.ts'
import type { BytesReply, Exchange, Peer, UpgradeReply } from '../../http/exchange/exchange.ts'
import { endToEnd, HeaderList } from '../../http/exchange/headers.ts'
import type { Kubelet } from '../answers/at-kubelet.ts'
import { outgoingHeaders } from './forward.ts'
import { upgraderTo, type UpgradeTarget } from './upgrade.ts'

export interface OwnKubeletParts {
  /** The hub's own, by whose certificate the kubelet knows it. */
  readonly credentials: () => Credentials
  /** Where the kubelet may listen on this machine, the most likely first. */
  readonly addresses: () => readonly { readonly host: string; readonly port: number }[]
  /** Whether root holds the other end of a connection within this machine. */
  readonly isRoots: (peer: Peer) => Promise<boolean>
}

/** A refusal of the kubelet is a line of text; a longer one is not shown. */
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
    const headers = kubeletHeaders(exchange, origin).with('Connection', 'close')
    const createConnection = (): Socket => socket
    const sending = request({ createConnection, path: url, headers: headers.raw })
    const gone = onAbort(exchange.signal, () => sending.destroy(new Error('the client has gone')))
    sending.once('close', () => gone[Symbol.dispose]()).on('error', () => undefined)
    sending.end()
    const [response] = (await once(sending, 'response').catch((cause: Error) => {
      throw new StatusError(serviceUnavailable(unreachable([cause.message])))
    })) as [IncomingMessage]
    const { statusCode: status = 0, rawHeaders } = response
    if (status !== 200) throw new StatusError(await refusalIn(response, status))
    return {
      kind: 'bytes',
      from: 'hub',
      status,
      headers: endToEnd(new HeaderList(rawHeaders)),
      source: sourceOf(partsOf(response)),
    }
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

async function* partsOf(response: IncomingMessage): AsyncGenerator<readonly Uint8Array[]> {
  for await (const part of response) yield [part as Buffer]
}

/** The Status into which an API server turns it (registry/generic/rest/response_checker.go). */
async function refusalIn(response: IncomingMessage, status: number): Promise<Status> {
  const text = await wholeText(sourceOf(partsOf(response)), longestRefusal).catch(() => '')
  const said = text.trim()
  return status === 400
    ? badRequest(said)
    : internalError(`the kubelet answered ${status}: ${said}`)
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
