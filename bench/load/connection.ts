import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { AnswerReader } from './answer-reader.ts'
import { open, type Target } from './target.ts'

/** An answer that was received whole. Times in milliseconds since the request was written. */
export interface Answer {
  readonly status: number
  readonly bytes: number
  /** Of the body, not of the head: a head may be sent before there is anything to say. */
  readonly firstByteMs: number
  readonly ms: number
}

export interface Listening {
  readonly onHead?: (status: number) => void
  readonly onBody?: (bytes: Buffer) => void
  /** A watch: after its head it may be silent. */
  readonly mayBeSilent?: boolean
}

interface Asked extends Listening {
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: Error) => void
  readonly at: number
  status: number
  bytes: number
  firstByteAt: number
}

/** Longer than any answer that is worth waiting for takes. */
const usualSilenceMs = 20_000

/** One connection kept alive, one request at a time on it. */
export class Connection {
  readonly #socket: Duplex
  readonly #silenceMs: number
  #asked: Asked | undefined
  #broken: Error | undefined

  /** `silenceMs`: what is silent for so long in the middle of an answer is given up. */
  static async to(target: Target, silenceMs = usualSilenceMs): Promise<Connection> {
    return new Connection(await open(target), silenceMs)
  }

  private constructor(socket: Duplex, silenceMs: number) {
    this.#socket = socket
    this.#silenceMs = silenceMs
    const reader = new AnswerReader({
      head: (status) => {
        if (!this.#asked) throw new Error('an answer to nothing')
        this.#asked.status = status
        if (this.#asked.mayBeSilent === true && status === 200) this.#limitSilence(0)
        this.#asked.onHead?.(status)
      },
      body: (bytes) => this.#onBody(bytes),
      end: () => this.#onEnd(),
    })
    socket.on('data', (bytes: Buffer) => {
      try {
        reader.push(bytes)
      } catch (error) {
        socket.destroy(error as Error)
      }
    })
    socket.on('timeout', () => socket.destroy(new Error(`silence for ${silenceMs} ms`)))
    socket.on('error', (error) => this.#break(error))
    socket.on('close', () => this.#break(new Error('the connection was closed')))
  }

  /** Sends a whole request; rejects if the answer is not received to its end. */
  ask(request: string, listening: Listening = {}): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    if (this.#broken) reject(this.#broken)
    else {
      this.#asked = {
        ...listening,
        resolve,
        reject,
        at: performance.now(),
        status: 0,
        bytes: 0,
        firstByteAt: 0,
      }
      this.#limitSilence(this.#silenceMs)
      this.#socket.write(request)
    }
    return promise
  }

  close(): void {
    this.#socket.destroy()
  }

  #onBody(bytes: Buffer): void {
    const asked = this.#asked
    if (!asked) return
    if (asked.bytes === 0) asked.firstByteAt = performance.now()
    asked.bytes += bytes.length
    asked.onBody?.(bytes)
  }

  #onEnd(): void {
    const asked = this.#asked
    if (!asked) return
    this.#asked = undefined
    this.#limitSilence(0)
    const { status, bytes, at, firstByteAt } = asked
    asked.resolve({ status, bytes, firstByteMs: firstByteAt - at, ms: performance.now() - at })
  }

  #limitSilence(ms: number): void {
    if (this.#socket instanceof Socket) this.#socket.setTimeout(ms)
  }

  #break(error: Error): void {
    this.#broken ??= error
    this.#asked?.reject(this.#broken)
    this.#asked = undefined
  }
}

/** A request as it goes over the wire. */
export function requestOf(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body = '',
): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
  return `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${lines.join('')}${length}\r\n${body}`
}
