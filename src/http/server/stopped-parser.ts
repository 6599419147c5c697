import type { Duplex } from 'node:stream'

/** What Node's parser of a connection calls; `undefined` once it is freed. */
interface ParsedConnection {
  readonly parser?: Parser | null
}

interface Parser {
  /** Called for each head. */
  onIncoming: ((...head: unknown[]) => unknown) | null
  /** The index of what is called for each part of a body, which a parser may have none of. */
  readonly constructor: { readonly kOnBody?: number }
  [callback: number]: unknown
}

/** As llhttp understands it: what follows this message is not HTTP, and it stops. */
const notHttp = 2

/** What parsers called for parts of a body before it was taken off. */
const takenOff = new WeakMap<Parser, unknown>()

/**
 * Stops Node's parser at the next head, and has it skip the body before that. Destroying a
 * connection alone does not: the parser goes through all that was read at once, up to 64 KiB, and
 * Node makes a request and a response of each head in it, and a buffer of each part of a body,
 * thousands of them. Node has no documented way; where it has no such parser any more, this does
 * nothing.
 */
export function stopParser(connection: Duplex): void {
  skipBody(connection, () => notHttp)
}

/**
 * Has Node's parser skip the rest of the current body. Node discards the body of a request that is
 * over without an event, but makes a buffer of each part, so that a read of chunks of a byte takes
 * as long as if they were read.
 */
export function skipRestOfBody(connection: Duplex): void {
  skipBody(connection)
}

/**
 * Until the next head, for which `onHead` is called if it is given. Node uses a parser for another
 * connection once this one has closed, or has been handed over after a head: changes that Node does
 * not reset are undone before either.
 */
function skipBody(connection: Duplex, onHead?: () => number): void {
  const { parser } = connection as ParsedConnection
  const { onIncoming } = parser ?? {}
  if (!parser || typeof onIncoming !== 'function') return
  const { kOnBody } = parser.constructor
  if (kOnBody !== undefined && !takenOff.has(parser)) {
    takenOff.set(parser, parser[kOnBody])
    parser[kOnBody] = null
  }
  const restore = (): void => {
    connection.off('close', restore)
    if (kOnBody === undefined || !takenOff.has(parser)) return
    parser[kOnBody] = takenOff.get(parser)
    takenOff.delete(parser)
  }
  parser.onIncoming = (...head) => {
    restore()
    parser.onIncoming = onIncoming
    return onHead ? onHead() : onIncoming(...head)
  }
  connection.prependListener('close', restore)
}
