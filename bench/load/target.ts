import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'

/** Where a load goes, in words that pass from process to process. Files are paths to PEM. */
export interface Target {
  /** An origin: `http://` or `https://`, an address, a port. */
  readonly url: string
  readonly ca?: string
  readonly certificate?: string
  readonly key?: string
}

/**
 * Opens a socket that speaks HTTP/1.1 to `target`: with TLS exactly if its URL says so. Resolves
 * once connected.
 */
export function open({ url, ca, certificate, key }: Target): Promise<Duplex> {
  const { hostname: host, port, protocol } = new URL(url)
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>()
  const socket =
    protocol === 'https:'
      ? connectTls(
          {
            host,
            port: Number(port),
            ALPNProtocols: ['http/1.1'],
            ...(ca !== undefined && { ca: readFileSync(ca) }),
            ...(certificate !== undefined && { cert: readFileSync(certificate) }),
            ...(key !== undefined && { key: readFileSync(key) }),
          },
          () => resolve(socket),
        )
      : connect({ host, port: Number(port) }, () => resolve(socket))
  socket.setNoDelay(true)
  socket.once('error', reject)
  return promise
}
