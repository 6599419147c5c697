import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import {
  listenSecurely,
  type ListenerOptions,
  type SecureListener,
} from '../../src/http/server/listener.ts'
import { frame, preface } from './http2-frames.ts'
import { Wire, type Teardown } from './wire/wire.ts'

const hubs = await CertificateAuthority.create('hub')

/** What a client says of itself: no bytes of answers are to be sent until it opens a window. */
const noWindow = frame(4, 0, 0, Buffer.from('000400000000', 'hex'))

/** So many frames of SETTINGS; nghttp2 keeps no more than a thousand acknowledgements. */
export const settingsFrames = (count: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => frame(4, 0, 0)))

export interface Flooded {
  readonly listener: SecureListener
  readonly cuts: readonly string[]
  /** A client over HTTP/2 that writes its own frames, and lets none of an answer's body come. */
  readonly dial: () => Promise<Wire>
  /** The authority of the listener's certificate. */
  readonly ca: string
}

/** A client over HTTP/2 that writes its own frames, and lets none of an answer's body come. */
export async function dialWithoutWindow(t: Teardown, port: number, ca: string): Promise<Wire> {
  const socket = connect({ port, host: '127.0.0.1', ca, ALPNProtocols: ['h2'] })
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')])
  const wire = new Wire(socket)
  return wire.write(Buffer.concat([preface, noWindow]))
}

/** A TLS listener, which is closed with the test. */
export async function startFlooded(
  t: Teardown,
  handler: ListenerOptions['handler'],
  options: Partial<ListenerOptions> = {},
): Promise<Flooded> {
  const cuts: string[] = []
  const listener = await listenSecurely({
    at: [{ host: '127.0.0.1', port: 0 }],
    maxConnections: 1_000,
    credentials: await hubs.issue({
      commonName: 'hub',
      usage: 'server',
      ipAddresses: ['127.0.0.1'],
    }),
    onBroken: () => undefined,
    onCut: (why) => cuts.push(why),
    ...options,
    handler,
  })
  t.teardown(() => listener.close(0))
  const ca = hubs.certificate
  const dial = (): Promise<Wire> => dialWithoutWindow(t, listener.port, ca)
  return { listener, cuts, dial, ca }
}

/**
 * Sends what `nth` gives for 0, 1, 2, … after the preface of HTTP/2, until the connection is
 * closed.
 */
export async function floodOver(socket: TLSSocket, nth: (n: number) => Buffer): Promise<void> {
  socket.on('error', () => undefined).resume()
  // `once` would reject with the error that comes before.
  const closed = new Promise((resolve) => void socket.once('close', resolve))
  socket.write(Buffer.concat([preface, frame(4, 0, 0)]))
  for (let n = 0; !socket.closed && !socket.readableEnded; n++) {
    if (!socket.writable) break
    const more = Array.from({ length: 10 }, (_, i) => nth(10 * n + i))
    if (!socket.write(Buffer.concat(more)))
      await Promise.race([closed, new Promise((resolve) => void socket.once('drain', resolve))])
    else await new Promise(setImmediate)
  }
  await closed
}
