import type { ServerResponse } from 'node:http'
import type { Faults } from './faults.ts'
import type { SeenRequest } from './requests.ts'

/** Writes one answer to its client, subject to the faults that strike it. */
export class ResponseWriter {
  readonly #response: ServerResponse
  readonly #faults: Faults
  readonly #request: SeenRequest
  readonly #held: (() => void)[] = []
  #heldBytes = 0
  #left = Infinity

  constructor(response: ServerResponse, request: SeenRequest, faults: Faults) {
    this.#response = response
    this.#request = request
    this.#faults = faults
    for (const fault of faults.striking(request)) {
      if (fault.kind === 'cut') this.#left = Math.min(this.#left, fault.bytes)
    }
    const following = faults.follow(() => this.#release())
    response.once('close', () => following[Symbol.dispose]())
  }

  get isOpen(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded
  }

  /** How many bytes wait for the client to read them. */
  get waiting(): number {
    return this.#heldBytes + this.#response.writableLength
  }

  /** Whether a head was written, so that nothing but the body can follow. */
  get started(): boolean {
    return this.#response.headersSent
  }

  /** `headers`: names and values in turn. Sent at once where the answer is a stream. */
  head(status: number, headers: readonly string[], stream = false): void {
    this.#act(0, () => {
      // Go sends no connection header.
      this.#response.removeHeader('connection')
      this.#response.sendDate = false
      this.#response.writeHead(status, [...headers])
      if (stream) this.#response.flushHeaders()
    })
  }

  write(bytes: Uint8Array): void {
    this.#act(bytes.byteLength, () => this.#write(bytes))
  }

  end(bytes?: Uint8Array): void {
    this.#act(bytes?.byteLength ?? 0, () => {
      if (bytes && bytes.byteLength > 0) this.#write(bytes)
      if (this.isOpen && this.#left > 0) this.#response.end()
    })
  }

  /** The client sees a break. */
  break(): void {
    this.#response.destroy()
  }

  /** Calls `act` when the answer is over or its client gone. */
  onClose(act: () => void): void {
    if (this.#response.destroyed) act()
    else this.#response.once('close', act)
  }

  #write(bytes: Uint8Array): void {
    if (!this.isOpen) return
    if (bytes.byteLength < this.#left) {
      this.#left -= bytes.byteLength
      this.#response.write(bytes)
      return
    }
    this.#response.write(bytes.subarray(0, this.#left), () => this.#response.destroy())
    this.#left = 0
  }

  #act(bytes: number, act: () => void): void {
    if (this.#held.length === 0 && !this.#faults.isFrozen(this.#request)) {
      act()
      return
    }
    this.#heldBytes += bytes
    this.#held.push(() => {
      this.#heldBytes -= bytes
      act()
    })
  }

  #release(): void {
    while (this.#held.length > 0 && !this.#faults.isFrozen(this.#request)) this.#held.shift()?.()
  }
}
