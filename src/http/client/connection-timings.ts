/** How long connections live, and how their silence is judged; in milliseconds. */
export interface ConnectionTimings {
  /** How often a session is pinged: below the minute after which NATs forget. */
  readonly pingMs: number
  /** How long after a ping a session may be silent. */
  readonly pongMs: number
  /**
   * How old a connection gets before new requests go to another: one drawn from here, so that nodes
   * do not all do it at once.
   */
  readonly maxAgeMs: readonly [low: number, high: number]
  /**
   * How long an unused connection is kept: below the 90 s and more of API servers, so that the hub
   * closes first.
   */
  readonly idleMs: number
  /** How long a server that did not offer HTTP/2 is not asked for it again. */
  readonly http1Ms: number
}

export const defaultTimings: ConnectionTimings = {
  pingMs: 30_000,
  pongMs: 15_000,
  maxAgeMs: [30 * 60_000, 60 * 60_000],
  idleMs: 55_000,
  http1Ms: 10 * 60_000,
}
