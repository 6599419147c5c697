/** What one listener takes of its clients, in one place: everything a client could make grow or last is bounded here. */
export const limits = {
  /** Longer than any Go client keeps an idle connection (90 s), so that the client closes first and no request races our close. */
  idleMs: 150_000,
  /** A head arrives whole within this time; how long a body may take is for those to say who know what it is for. */
  headMs: 30_000,
  headBytes: 64 * 1024,
  /** From the connection to the end of the TLS handshake. */
  handshakeMs: 10_000,
  /** What is kept of an answer that its client is slow to read, before its source is told to stop. */
  answerBytes: 128 * 1024,
  /** A client that takes nothing of what waits for it for so long is not waited for: its answer is cut, a watch too. */
  stalledMs: 120_000,
  /** How long the rest of a body may take that nobody reads any more. */
  restMs: 30_000,
  /** Requests on one HTTP/1.1 connection at a time. No client of an API server sends one before the answer to the last. */
  pipelined: 64,
  /** At a time on one HTTP/2 connection: a kubelet watches each Secret and ConfigMap its pods mount, hundreds of them. */
  streams: 1_000,
  /** What HTTP/2 may keep for one connection (frames to be sent, tables, heads), in megabytes as Node counts it. */
  sessionMegabytes: 64,
  /** How long a client that was told all may take to close its end too. */
  lingerMs: 1_000,
} as const
