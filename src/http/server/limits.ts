/** The limits of one listener, for everything that a client can make grow or last. */
export const limits = {
  /**
   * Longer than any Go client keeps an idle connection (90 s), so that the client closes first and
   * no request races the hub's close.
   */
  idleMs: 150_000,
  /**
   * The timeout for a request's head. That for a body depends on the request, and is set by the
   * pipeline.
   */
  headMs: 30_000,
  headBytes: 64 * 1024,
  /**
   * The bytes of a body that are read ahead of its reader. Each part of it is a buffer that takes
   * some 300 bytes besides, in chunks or frames of a byte, too.
   */
  bodyBytes: 16 * 1024,
  /** From the connection to the end of the TLS handshake. */
  handshakeMs: 10_000,
  /** The bytes of an answer that may wait for a slow client before its source has to stop. */
  answerBytes: 128 * 1024,
  /**
   * How long a client may accept nothing of what waits for it before the hub cuts its answer, a
   * watch included.
   */
  stalledMs: 120_000,
  /** How many times per `stalledMs` answers and connections are checked. */
  checksPerTimeout: 24,
  /** How long the rest of an abandoned body may take to arrive. */
  restMs: 30_000,
  /**
   * Requests in flight on one HTTP/1.1 connection. No client of an API server sends one before the
   * answer to the last.
   */
  pipelined: 64,
  /**
   * Streams in flight on one HTTP/2 connection: a kubelet watches each Secret and ConfigMap that
   * its pods mount, hundreds of them.
   */
  streams: 1_000,
  /**
   * The same until a caller is proven on it, unless it has sent a certificate: Go's clients open as
   * many before they know the limit.
   */
  unprovenStreams: 100,
  /**
   * What HTTP/2 may hold for one connection (streams, frames to send, tables, heads), in megabytes
   * as Node counts it; over the limit, new streams are refused. 2 are too few for 1,000 watches
   * that begin at once, and Node cannot raise the limit later.
   */
  sessionMegabytes: 4,
  /**
   * Streams that a client may open and reset at once, and per second from then on; over the limit
   * the connection is closed.
   */
  resets: 1_000,
  resetsPerSecond: 33,
  /**
   * The same at once from a client that shows no certificate. A pair of frames of 27 bytes makes a
   * stream, which takes 17 KB until it is collected, and hundreds come with one read.
   */
  unprovenResets: 100,
  /**
   * How long requests may continue after the authorities change that signed their client's
   * certificate.
   */
  withdrawnMs: 30_000,
  /** How long a client may take to close its end after it got everything. */
  lingerMs: 1_000,
} as const
