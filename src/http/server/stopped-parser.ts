import type { Duplex } from 'node:stream'

/** What Node's parser of a connection calls for each head; `undefined` once it is freed. */
interface ParsedConnection {
  readonly parser?: { onIncoming: (() => number) | null } | null
}

/** As llhttp understands it: what follows this message is not HTTP, and it stops. */
const notHttp = 2

/**
 * Stops Node's parser at the next head. Destroying a connection alone does not: the parser goes
 * through all that was read at once, up to 64 KiB, and Node makes a request and a response of each
 * head in it, thousands of them. Node has no documented way; where it has no such parser any more,
 * this does nothing.
 */
export function stopParser(connection: Duplex): void {
  const { parser } = connection as ParsedConnection
  if (typeof parser?.onIncoming === 'function') parser.onIncoming = () => notHttp
}
