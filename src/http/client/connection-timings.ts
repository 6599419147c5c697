/** Lifetimes and timeouts of connections, in milliseconds. */
export interface ConnectionTimings {
  /** The interval of HTTP/2 pings: below the minute after which NATs drop a connection. */
  readonly pingMs: number
  /** How long a session may be silent after a ping. */
  readonly pongMs: number
  /**
   * The age after which a connection takes no new requests, drawn from this range so that the nodes
   * of a cluster do not reconnect at once.
   */
  readonly maxAgeMs: readonly [low: number, high: number]
  /**
   * How long an idle connection stays open: below the 90 s and more of API servers, so that the hub
   * closes it first.
   */
  readonly idleMs: number
  /** How long the hub uses HTTP/1.1 only after a server did not offer HTTP/2. */
  readonly http1Ms: number
}

export const defaultTimings: ConnectionTimings = {
  pingMs: 30_000,
  pongMs: 15_000,
  maxAgeMs: [30 * 60_000, 60 * 60_000],
  idleMs: 55_000,
  http1Ms: 10 * 60_000,
}
