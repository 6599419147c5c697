/**
 * Cuts the body of a watch into events: lines in JSON; in protobuf each after its length in four
 * bytes, big end first.
 */
export class Frames {
  readonly #protobuf: boolean
  readonly #onFrame: (frame: Buffer) => void
  #begun: Buffer = Buffer.alloc(0)

  constructor(mediaType: string, onFrame: (frame: Buffer) => void) {
    this.#protobuf = mediaType.includes('protobuf')
    this.#onFrame = onFrame
  }

  push(bytes: Buffer): void {
    let rest = this.#begun.length > 0 ? Buffer.concat([this.#begun, bytes]) : bytes
    for (;;) {
      const end = this.#protobuf ? endOfMessage(rest) : rest.indexOf(0x0a) + 1
      if (end === 0) break
      this.#onFrame(rest.subarray(0, end))
      rest = rest.subarray(end)
    }
    this.#begun = Buffer.from(rest)
  }
}

/** Where the first message ends; 0 if it goes on in bytes to come. */
function endOfMessage(bytes: Buffer): number {
  if (bytes.length < 4) return 0
  const end = 4 + bytes.readUInt32BE(0)
  return end > bytes.length ? 0 : end
}
