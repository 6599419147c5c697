/** The server provably did not receive the request: there was no connection to it. */
export class NotConnected extends Error {
  readonly code = 'NOT_CONNECTED'
  constructor(origin: string, cause: unknown) {
    super(`no connection to ${origin}`, { cause })
  }
}

/** A server did not do in time what a connection to it begins with. */
export class ConnectTimeout extends Error {
  readonly code = 'CONNECT_TIMEOUT'
  /** @param missing What did not come. */
  constructor(
    origin: string,
    missing: 'address of' | 'connection to' | 'HTTP/2 settings from',
    ms: number,
  ) {
    super(`no ${missing} ${origin} within ${ms} ms`)
  }
}

/** A server closed a connection before a request could be sent over it. */
export class ClosedAtOnce extends Error {
  readonly code = 'CLOSED_AT_ONCE'
  constructor(origin: string) {
    super(`${origin} closed the connection at once`)
  }
}

/** The hub itself has closed its connections to a server. */
export class ConnectionsClosed extends Error {
  readonly code = 'CONNECTIONS_CLOSED'
  constructor() {
    super('the connections to this server are closed')
  }
}

/**
 * The server provably did not process the request: it refused the stream, or its GOAWAY excluded it
 * (RFC 9113, section 8.7).
 */
export class StreamRefused extends Error {
  readonly code = 'STREAM_REFUSED'
  constructor(origin: string) {
    super(`${origin} refused a stream`)
  }
}

/** The stream ended before the answer did. */
export class StreamBroken extends Error {
  readonly code = 'STREAM_BROKEN'
  constructor(origin: string, cause: unknown) {
    super(`${origin} broke off a stream`, { cause })
  }
}

/** The server answers no ping: the connection is half open, or the server is unresponsive. */
export class SessionSilent extends Error {
  readonly code = 'SESSION_SILENT'
  constructor(origin: string, ms: number) {
    super(`${origin} has not answered a ping within ${ms} ms`)
  }
}
