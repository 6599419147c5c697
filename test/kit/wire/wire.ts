import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { inTime } from '../until.ts'

/** Whatever has a test's end. */
export interface Teardown {
  teardown(act: () => unknown): void
}

/** The head of a message as it came, without its closing empty line. */
export interface Head {
  readonly line: string
  /** Names and values in turn. */
  readonly fields: readonly string[]
}

export interface Answer extends Head {
  readonly status: number
  readonly body: string
  readonly trailers: readonly string[]
}

/** The values of a field, whatever the case of its name. */
export const valuesOf = (
  { fields }: { readonly fields: readonly string[] },
  name: string,
): string[] =>
  fields.filter((_, i) => i % 2 === 1 && fields[i - 1]?.toLowerCase() === name.toLowerCase())

/**
 * One end of a connection: writes exactly the bytes it is told to, and reads as a test asks for
 * them. Text is latin1.
 */
export class Wire {
  readonly socket: Duplex
  /** Resolves when the connection is gone, however that came about. */
  readonly closed: Promise<void>
  /** Resolves when the other end has said that it sends no more, or the connection is gone. */
  readonly ended: Promise<void>
  #waiting = Buffer.alloc(0)
  #over = false
  #wake: (() => void)[] = []

  constructor(socket: Duplex) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#waiting = Buffer.concat([this.#waiting, chunk])
      this.#stir()
    })
    const over = (): void => {
      this.#over = true
      this.#stir()
    }
    socket.on('end', over).on('close', over).on('error', over)
    this.closed = new Promise((resolve) => void socket.once('close', () => resolve()))
    this.ended = new Promise((resolve) => {
      socket.once('end', () => resolve())
      socket.once('close', () => resolve())
    })
  }

  #stir(): void {
    const wake = this.#wake
    this.#wake = []
    for (const resolve of wake) resolve()
  }

  async #next(): Promise<void> {
    if (this.#over) throw new Error(`the connection ended after ${JSON.stringify(this.#seen())}`)
    const more = new Promise<void>((resolve) => this.#wake.push(resolve))
    await inTime('more bytes', more, { describe: () => this.#seen() })
  }

  #seen(): string {
    return this.#waiting.toString('latin1').slice(0, 2_000)
  }

  write(text: string | Uint8Array): this {
    this.socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text)
    return this
  }

  /** The next `length` bytes. */
  async take(length: number): Promise<string> {
    while (this.#waiting.length < length) await this.#next()
    const taken = this.#waiting.subarray(0, length)
    this.#waiting = this.#waiting.subarray(length)
    return taken.toString('latin1')
  }

  /** Everything up to and with `mark`. */
  async until(mark: string): Promise<string> {
    let from = 0
    for (;;) {
      const at = this.#waiting.indexOf(mark, from, 'latin1')
      if (at >= 0) return this.take(at + mark.length)
      from = Math.max(0, this.#waiting.length - mark.length)
      await this.#next()
    }
  }

  /** Everything that comes before the other end stops, or breaks off. */
  async rest(): Promise<string> {
    while (!this.#over) await this.#next()
    return this.take(this.#waiting.length)
  }

  async head(): Promise<Head> {
    const [line = '', ...rest] = (await this.until('\r\n\r\n')).slice(0, -4).split('\r\n')
    return { line, fields: rest.flatMap(split) }
  }

  /** A whole answer; to a HEAD there is no body, whatever the head says. */
  async answer(method = 'GET'): Promise<Answer> {
    const head = await this.head()
    const status = Number(head.line.split(' ')[1])
    const empty = method === 'HEAD' || status === 204 || status === 304 || status < 200
    const [length] = valuesOf(head, 'content-length')
    const chunked = valuesOf(head, 'transfer-encoding').includes('chunked')
    if (empty) return { ...head, status, body: '', trailers: [] }
    if (chunked) return { ...head, status, ...(await this.#chunks()) }
    const body = length === undefined ? await this.rest() : await this.take(Number(length))
    return { ...head, status, body, trailers: [] }
  }

  /** One chunk of a chunked body; '' is the last. */
  async chunk(): Promise<string> {
    const size = Number.parseInt(await this.until('\r\n'), 16)
    if (size === 0) return ''
    const data = await this.take(size)
    await this.take(2)
    return data
  }

  async #chunks(): Promise<{ body: string; trailers: string[] }> {
    let body = ''
    for (;;) {
      const chunk = await this.chunk()
      if (chunk === '') break
      body += chunk
    }
    const trailers: string[] = []
    for (let line = await this.until('\r\n'); line !== '\r\n'; line = await this.until('\r\n')) {
      trailers.push(...split(line.slice(0, -2)))
    }
    return { body, trailers }
  }

  destroy(): void {
    this.socket.destroy()
  }

  /** Breaks the connection off: the other end sees a reset. */
  reset(): void {
    const socket = this.socket as Socket
    socket.resetAndDestroy()
  }
}

const split = (line: string): [string, string] => {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1).trim()]
}

/** A client's end of a new connection; gone with the test. */
export async function dial(t: Teardown, port: number, host = '127.0.0.1'): Promise<Wire> {
  const socket = connect({ port, host, allowHalfOpen: true, noDelay: true })
  t.teardown(() => socket.destroy())
  const wire = new Wire(socket)
  await once(socket, 'connect')
  return wire
}
