import type { Duplex } from 'node:stream'

/** What Node's parser of a connection calls; `undefined` once it is freed. */
interface ParsedConnection {
  readonly parser?: Parser | null
}

interface Parser {
  /** Called for each head. */
  onIncoming: (() => number) | null
  /** The index of what is called for each part of a body, which a parser may have none of. */
  readonly constructor: { readonly kOnBody?: number }
  [callback: number]: unknown
}

/** As llhttp understands it: what follows this message is not HTTP, and it stops. */
const notHttp = 2

/**
 * Stops Node's parser at the next head, and has it skip the body before that. Destroying a
 * connection alone does not: the parser goes through all that was read at once, up to 64 KiB, and
 * Node makes a request and a response of each head in it, and a buffer of each part of a body,
 * thousands of them. Node has no documented way; where it has no such parser any more, this does
 * nothing. Node uses a parser for another connection once this one has closed, or has been handed
 * over after a head: what is changed and Node does not reset is restored before either.
 */
export function stopParser(connection: Duplex): void {
  const { parser } = connection as ParsedConnection
  if (typeof parser?.onIncoming !== 'function') return
  const { kOnBody } = parser.constructor
  const onBody = kOnBody === undefined ? undefined : parser[kOnBody]
  const restore = (): void => {
    if (kOnBody !== undefined) parser[kOnBody] = onBody
  }
  if (kOnBody !== undefined) parser[kOnBody] = null
  parser.onIncoming = () => {
    restore()
    return notHttp
  }
  connection.prependOnceListener('close', restore)
}
