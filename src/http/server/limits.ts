/** The limits of one listener: whatever a client could make grow or last is bounded here. */
export const limits = {
  /**
   * Longer than any Go client keeps an idle connection (90 s), so that the client closes first and
   * no request races our close.
   */
  idleMs: 150_000,
  /**
   * How long a head may take to arrive. The time for a body depends on the request, and is bounded
   * by the pipeline.
   */
  headMs: 30_000,
  headBytes: 64 * 1024,
  /**
   * TLS connections on which no caller is proven: a turn of the event loop takes what has come on
   * all of them, which may be 64 KiB of records each that cost much and carry nothing (see
   * `RecordBudget`).
   */
  unprovenTls: 128,
  /**
   * What may come around the content of TLS records after the handshake until a caller is proven:
   * at once, and a second. One record of 16 KiB may be on its way, whose content has not come yet.
   */
  recordBytes: 32 * 1024,
  recordBytesPerSecond: 1024,
  /** From the connection to the end of the TLS handshake. */
  handshakeMs: 10_000,
  /** How much of an answer may wait for a slow client before its source is told to stop. */
  answerBytes: 128 * 1024,
  /**
   * How long a client may take nothing of what waits for it before its answer is cut, a watch
   * included.
   */
  stalledMs: 120_000,
  /** How long the rest of a body may take to arrive that nobody reads any more. */
  restMs: 30_000,
  /**
   * Requests on one HTTP/1.1 connection at a time. No client of an API server sends one before the
   * answer to the last.
   */
  pipelined: 64,
  /**
   * At a time on one HTTP/2 connection: a kubelet watches each Secret and ConfigMap its pods mount,
   * hundreds of them.
   */
  streams: 1_000,
  /**
   * The same until a caller is proven on it, unless it showed a certificate: Go's clients open as
   * many before they know the limit.
   */
  unprovenStreams: 100,
  /**
   * What HTTP/2 may keep for one connection (streams, frames to be sent, tables, heads), in
   * megabytes as Node counts it; beyond it new streams are refused. For 1,000 watches that begin at
   * once 2 are too few, and Node cannot raise it later.
   */
  sessionMegabytes: 4,
  /**
   * Streams that a client may open and reset at once, and a second from then on; with more the
   * connection is closed.
   */
  resets: 1_000,
  resetsPerSecond: 33,
  /**
   * How many refusals in a row a connection gets; an API server, too, ends an HTTP/2 connection
   * after its first 401.
   */
  refusals: 16,
  /**
   * How long an answer may wait in part for a client on whose connection no caller was proven, and
   * how long the rest of its body may take.
   */
  unprovenMs: 5_000,
  /** What a connection is estimated to hold, in memory of the process: without TLS, and with it. */
  connectionBytes: 16 * 1024,
  tlsBytes: 80 * 1024,
  /**
   * What a head that is being read over HTTP/2 may hold besides its text: small fields take many
   * times their size.
   */
  http2HeadBytes: 160 * 1024,
  /**
   * As much as the connection of an honest client is estimated to hold until its caller is proven:
   * over HTTP/2, with many requests at once.
   */
  beginningBytes: 512 * 1024,
  /** What a request is estimated to hold besides its head and what waits on its stream. */
  requestBytes: 4 * 1024,
  /**
   * How long what is under way may go on after the authorities have changed that vouched for its
   * client.
   */
  withdrawnMs: 30_000,
  /** How long a client may take to close its end once it was sent everything. */
  lingerMs: 1_000,
} as const
