import type { Duplex } from 'node:stream'

/** No client of a pod's streams sends larger frames. */
const largestFrame = 1024 * 1024

/** The server's side of a WebSocket whose messages begin with a channel number. */
export class ChannelStream {
  readonly #socket: Duplex
  #waiting: Buffer = Buffer.alloc(0)
  #parts: Buffer[] = []
  #partBytes = 0
  #closed = false
  /** Called for each message from the client. */
  onMessage: (channel: number, data: Buffer) => void = () => undefined

  constructor(socket: Duplex, head: Buffer) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.once('close', () => (this.#closed = true))
    // The caller sets its callbacks first.
    if (head.byteLength > 0) queueMicrotask(() => this.#read(head))
  }

  send(channel: number, data: Uint8Array): void {
    this.#frame(0x2, Buffer.concat([Buffer.from([channel]), data]))
  }

  /** Sends a close frame and ends the connection. */
  close(code = 1000): void {
    if (this.#closed) return
    const payload = Buffer.alloc(2)
    payload.writeUInt16BE(code)
    this.#frame(0x8, payload)
    this.#closed = true
    this.#socket.end()
  }

  #frame(opcode: number, payload: Buffer): void {
    if (this.#closed) return
    const { byteLength } = payload
    const head = Buffer.alloc(byteLength < 126 ? 2 : byteLength < 65_536 ? 4 : 10)
    head[0] = 0x80 | opcode
    if (byteLength < 126) head[1] = byteLength
    else if (byteLength < 65_536) {
      head[1] = 126
      head.writeUInt16BE(byteLength, 2)
    } else {
      head[1] = 127
      head.writeBigUInt64BE(BigInt(byteLength), 2)
    }
    this.#socket.write(Buffer.concat([head, payload]))
  }

  #read(chunk: Buffer): void {
    this.#waiting = this.#waiting.byteLength === 0 ? chunk : Buffer.concat([this.#waiting, chunk])
    for (let used = this.#next(); used > 0; used = this.#next()) {
      this.#waiting = this.#waiting.subarray(used)
    }
  }

  /** How many bytes the first whole frame took; 0 while there is none. */
  #next(): number {
    const bytes = this.#waiting
    if (this.#closed || bytes.byteLength < 2) return 0
    const short = (bytes[1] ?? 0) & 0x7f
    const masked = ((bytes[1] ?? 0) & 0x80) !== 0
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
    const start = 2 + lengthBytes + (masked ? 4 : 0)
    if (bytes.byteLength < start) return 0
    const length =
      lengthBytes === 0
        ? short
        : lengthBytes === 2
          ? bytes.readUInt16BE(2)
          : Number(bytes.readBigUInt64BE(2))
    if (!masked || length > largestFrame) {
      this.close(1002)
      return 0
    }
    if (bytes.byteLength < start + length) return 0
    const payload = Buffer.from(bytes.subarray(start, start + length))
    for (let at = 0; at < length; at++)
      payload[at] = (payload[at] ?? 0) ^ (bytes[start - 4 + (at % 4)] ?? 0)
    this.#take((bytes[0] ?? 0) & 0x0f, ((bytes[0] ?? 0) & 0x80) !== 0, payload)
    return start + length
  }

  #take(opcode: number, last: boolean, payload: Buffer): void {
    if (opcode === 0x8) this.close()
    else if (opcode === 0x9) this.#frame(0xa, payload)
    else if (opcode <= 0x2) {
      this.#parts.push(payload)
      this.#partBytes += payload.byteLength
      if (this.#partBytes > largestFrame) this.close(1009)
      else if (last) this.#deliver()
    }
  }

  #deliver(): void {
    const message = Buffer.concat(this.#parts)
    this.#parts = []
    this.#partBytes = 0
    if (message.byteLength > 0) this.onMessage(message[0] ?? 0, message.subarray(1))
  }
}
