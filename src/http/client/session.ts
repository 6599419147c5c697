import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { after, every, jitter, turn } from '../../base/clock.ts'
import { releaseSession } from '../../base/http2-session.ts'
import { connectMs } from './dial.ts'
import type { ConnectionTimings } from './connection-timings.ts'
import type { StreamOpener, Stream } from './stream.ts'
import { ClosedAtOnce, ConnectTimeout, SessionSilent } from './wire-error.ts'

/**
 * The limit of streams on one connection, whatever the server allows: when the connection breaks,
 * all of them are opened again at once.
 */
const mostStreams = 250

/**
 * The unread bytes of one stream: enough for a long list over a slow link, little when hundreds of
 * clients do not read.
 */
const streamWindowBytes = 128 * 1024

const sessionWindowBytes = 1024 * 1024

/** The memory limit of node:http2 for a session, in MB: more than its streams may leave unread. */
const sessionMemoryMb = 64

/**
 * One HTTP/2 connection for watches.
 *
 *   open -> draining              it is old or retired, or the server sent GOAWAY: no new streams
 *   draining -> closed            its last stream has ended
 *   open or draining -> closed    the connection breaks, or the server answers no ping
 */
export class Session implements StreamOpener {
  readonly #origin: string
  readonly #socket: TLSSocket
  readonly #http: ClientHttp2Session
  readonly #timings: ConnectionTimings
  readonly #timers: Disposable[]
  readonly #onRoom: () => void
  #deadline: Disposable | undefined
  #idle: Disposable | undefined
  #streams = 0
  #lastStreamId = Number.MAX_SAFE_INTEGER
  #draining = false
  #onClose: () => void = () => undefined
  #onSilent: () => void = () => undefined

  private constructor(
    origin: string,
    socket: TLSSocket,
    timings: ConnectionTimings,
    onRoom: () => void,
  ) {
    this.#origin = origin
    this.#socket = socket
    this.#timings = timings
    this.#onRoom = onRoom
    const http = connect(origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: streamWindowBytes },
      maxSessionMemory: sessionMemoryMb,
    })
    this.#http = http
    // Each stream gets the cause by an event of its own.
    http.on('error', () => undefined)
    http.on('goaway', (_code, last) => {
      this.#lastStreamId = Math.min(this.#lastStreamId, last)
      this.drain()
    })
    http.once('close', () => this.#closed())
    this.#timers = [
      every(timings.pingMs, () => this.#ping()),
      after(jitter(...timings.maxAgeMs), () => this.drain()),
    ]
  }

  /** Resolves once the server has sent its limit of streams. */
  static open(
    origin: string,
    socket: TLSSocket,
    timings: ConnectionTimings,
    onRoom: () => void,
  ): Promise<Session> {
    const session = new Session(origin, socket, timings, onRoom)
    const http = session.#http
    return new Promise((resolve, reject) => {
      const patience = after(connectMs, () =>
        http.destroy(new ConnectTimeout(origin, 'HTTP/2 settings from', connectMs)),
      )
      let cause: Error = new ClosedAtOnce(origin)
      const onError = (error: Error): void => void (cause = error)
      const onClose = (): void => {
        patience[Symbol.dispose]()
        reject(cause)
      }
      http.on('error', onError).once('close', onClose)
      http.once('remoteSettings', () => {
        patience[Symbol.dispose]()
        http.off('error', onError).off('close', onClose)
        http.setLocalWindowSize(sessionWindowBytes)
        session.#closeWhenIdle()
        resolve(session)
      })
    })
  }

  /**
   * The number of further streams that it accepts. Leaves a tenth of the server's limit free: the
   * server may still count streams that have closed here.
   */
  get room(): number {
    if (this.#draining || this.#http.closed || this.#http.destroyed) return 0
    const allowed = this.#http.remoteSettings.maxConcurrentStreams ?? mostStreams
    return Math.min(mostStreams, allowed - Math.max(1, Math.ceil(allowed / 10))) - this.#streams
  }

  onClose(act: () => void): void {
    this.#onClose = act
  }

  /** Calls `act` where a ping was not answered, before the streams break. */
  onSilent(act: () => void): void {
    this.#onSilent = act
  }

  run(stream: Stream): void {
    const opened = stream.start(this)
    if (!opened) return
    this.#streams++
    this.#idle?.[Symbol.dispose]()
    opened.once('close', () => {
      this.#streams--
      this.#closeWhenIdle()
      this.#onRoom()
    })
  }

  open(headers: string[]): ClientHttp2Stream {
    return this.#http.request(headers, { endStream: true })
  }

  isUnprocessed({ id }: ClientHttp2Stream): boolean {
    return id === undefined || id > this.#lastStreamId
  }

  /** Takes no more streams; streams in flight complete. */
  drain(): void {
    this.#draining = true
    if (this.#streams === 0) this.destroy()
  }

  destroy(cause?: Error): void {
    this.#http.destroy(cause, cause && constants.NGHTTP2_CANCEL)
  }

  /** Closes a session without streams before the server does. */
  #closeWhenIdle(): void {
    if (this.#streams > 0) return
    if (this.#draining) this.destroy()
    else this.#idle = after(this.#timings.idleMs, () => this.drain())
  }

  #ping(): void {
    if (this.#deadline || this.#http.destroyed) return
    this.#awaitPong()
    this.#http.ping((error) => {
      if (error) return
      this.#deadline?.[Symbol.dispose]()
      this.#deadline = undefined
    })
  }

  /**
   * Over a slow link the answer to a ping may be queued behind other bytes: while any bytes arrive,
   * the server is alive.
   */
  #awaitPong(): void {
    const heard = this.#socket.bytesRead
    const { pongMs } = this.#timings
    this.#deadline = after(pongMs, () => {
      // The answer may have arrived while this process had no time to read it.
      void turn().then(() => {
        if (!this.#deadline) return
        if (this.#socket.bytesRead > heard) this.#awaitPong()
        else this.#silent()
      })
    })
  }

  #silent(): void {
    this.#onSilent()
    this.destroy(new SessionSilent(this.#origin, this.#timings.pongMs))
  }

  #closed(): void {
    for (const timer of this.#timers) timer[Symbol.dispose]()
    this.#deadline?.[Symbol.dispose]()
    this.#idle?.[Symbol.dispose]()
    this.#socket.destroy()
    releaseSession(this.#http)
    this.#onClose()
  }
}
