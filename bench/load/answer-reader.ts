/** The callbacks for one answer, in this order. */
export interface AnswerSink {
  head(status: number): void
  /** Bytes of the body, without their framing; good until the call returns. */
  body(bytes: Buffer): void
  /** The whole answer was received, as its framing says. */
  end(): void
}

const headEnd = Buffer.from('\r\n\r\n')
const lineEnd = Buffer.from('\r\n')
const nothing = Buffer.alloc(0)

/**
 * Reads answers of HTTP/1.1 off one connection, no more of them than a load generator needs: the
 * status, where the body begins, that it ended. A body must be framed by Content-Length or chunks:
 * one that ends with the connection cannot be told from a cut one.
 */
export class AnswerReader {
  readonly #sink: AnswerSink
  #state: 'head' | 'length' | 'size' | 'chunk' | 'chunk-end' | 'trailers' = 'head'
  /** Bytes of the body, or of the chunk, that are still to come. */
  #left = 0
  /** The beginning of a head or a line that goes on in the bytes to come. */
  #begun = nothing

  constructor(sink: AnswerSink) {
    this.#sink = sink
  }

  /** Throws what makes the bytes unreadable. */
  push(bytes: Buffer): void {
    let rest = this.#begun.length > 0 ? Buffer.concat([this.#begun, bytes]) : bytes
    this.#begun = nothing
    while (rest.length > 0) {
      const next = this.#step(rest)
      if (next === undefined) {
        // A copy: what the socket handed out may be its own again.
        this.#begun = Buffer.from(rest)
        return
      }
      rest = next
    }
  }

  /**
   * Reads as far as one state goes and answers what is left; `undefined` if more bytes are needed
   * to do anything.
   */
  #step(bytes: Buffer): Buffer | undefined {
    switch (this.#state) {
      case 'head':
        return this.#upTo(bytes, headEnd, (head) => this.#readHead(head))
      case 'length':
      case 'chunk':
        return this.#readBody(bytes)
      case 'size':
        return this.#upTo(bytes, lineEnd, (line) => this.#readSize(line))
      case 'chunk-end':
        return this.#upTo(bytes, lineEnd, () => {
          this.#state = 'size'
        })
      case 'trailers':
        return this.#upTo(bytes, lineEnd, (line) => {
          if (line === '') this.#ended()
        })
    }
  }

  #upTo(bytes: Buffer, end: Buffer, read: (text: string) => void): Buffer | undefined {
    const at = bytes.indexOf(end)
    if (at < 0) {
      if (bytes.length > 65_536) throw new Error('a head or line of more than 64 KB')
      return undefined
    }
    read(bytes.toString('latin1', 0, at))
    return bytes.subarray(at + end.length)
  }

  #readHead(head: string): void {
    const status = Number(head.slice(9, 12))
    if (!head.startsWith('HTTP/1.1 ') || Number.isNaN(status))
      throw new Error(`not an answer of HTTP/1.1: ${head.slice(0, 40)}`)
    if (status < 200) return
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    const chunked = /\r\ntransfer-encoding: *chunked/i.test(head)
    if (length === undefined && !chunked)
      throw new Error('a body that only the end of the connection ends')
    this.#sink.head(status)
    this.#left = chunked ? 0 : Number(length)
    this.#state = chunked ? 'size' : 'length'
    if (!chunked && this.#left === 0) this.#ended()
  }

  #readSize(line: string): void {
    this.#left = Number.parseInt(line, 16)
    if (Number.isNaN(this.#left)) throw new Error(`not the size of a chunk: ${line.slice(0, 40)}`)
    this.#state = this.#left === 0 ? 'trailers' : 'chunk'
  }

  #readBody(bytes: Buffer): Buffer {
    const part = bytes.subarray(0, this.#left)
    this.#left -= part.length
    this.#sink.body(part)
    if (this.#left === 0) {
      if (this.#state === 'length') this.#ended()
      else this.#state = 'chunk-end'
    }
    return bytes.subarray(part.length)
  }

  #ended(): void {
    this.#state = 'head'
    this.#sink.end()
  }
}
