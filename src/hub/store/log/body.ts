import * as fs from 'node:fs'
import { promisify } from 'node:util'

/** What a record says of a body in its own frame. */
export type BodyMark = readonly [length: number, digest: number, serial: number]

/** What a record says of a body that an earlier frame has brought: where it is, too. */
export type PlacedMark = readonly [...BodyMark, segment: number, offset: number]

/**
 * The bytes of an object or document in the log. What neither the state nor a list in progress
 * refers to is garbage, and gone after a compaction, which moves the others.
 */
export class Body {
  segment: Segment
  offset: number
  /** As stored: a sealed body is longer than what it seals. */
  readonly length: number
  /** Of the bytes before sealing: equal for equal bytes. */
  readonly digest: number
  /** Larger than of any body before it. */
  readonly serial: number

  constructor(segment: Segment, offset: number, [length, digest, serial]: BodyMark | PlacedMark) {
    this.segment = segment
    this.offset = offset
    this.length = length
    this.digest = digest
    this.serial = serial
  }

  get mark(): PlacedMark {
    return [this.length, this.digest, this.serial, this.segment.id, this.offset]
  }

  moveTo(segment: Segment, offset: number): void {
    this.segment = segment
    this.offset = offset
  }
}

/** The bodies of these marks that lie one after another. */
export function bodiesAt(
  segment: Segment,
  offset: number,
  marks: readonly (BodyMark | PlacedMark)[],
): Body[] {
  let at = offset
  return marks.map((mark) => {
    const body = new Body(segment, at, mark)
    at += body.length
    return body
  })
}

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_RDWR } = fs.constants
const [write, writev, fdatasync] = [fs.write, fs.writev, fs.fdatasync].map(promisify) as [
  typeof fs.write.__promisify__,
  typeof fs.writev.__promisify__,
  typeof fs.fdatasync.__promisify__,
]

/** `undefined`: there is no such file. */
export const inodeAt = (path: string): number | undefined =>
  fs.statSync(path, { throwIfNoEntry: false })?.ino

/** A file of the log. */
export class Segment {
  readonly id: number
  readonly path: string
  /** Bytes of frames that count. */
  end = 0
  /** Up to here it is on the disk. */
  synced = 0
  /** A sync failed: the next one would say that all is well. */
  isLost = false
  #fd: number | undefined
  #isOwn = false

  /** An existing one is opened at its first read. */
  constructor(id: number, path: string) {
    this.id = id
    this.path = path
  }

  /** Creates the file. Throws the system's errors. */
  create(): void {
    // One that could not be begun may be there.
    fs.rmSync(this.path, { force: true })
    this.#fd = fs.openSync(this.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    this.#isOwn = true
  }

  /** Throws the system's errors, and where there are fewer bytes. */
  read(offset: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length)
    for (let read = 0; read < length;) {
      const count = fs.readSync(this.#open(), bytes, read, length - read, offset + read)
      if (count === 0) throw new Error(`${this.path} is shorter than it was`)
      read += count
    }
    return bytes
  }

  /** Of the file, which may be longer than what counts. */
  size(): number {
    return fs.fstatSync(this.#open()).size
  }

  /** Rejects with the system's errors. */
  async append(parts: readonly Uint8Array[], length: number): Promise<void> {
    const { bytesWritten } = await writev(this.#open(), parts, this.end)
    if (bytesWritten === length) return
    // A disk that is filling up takes a part, and refuses the rest.
    const whole = Buffer.concat(parts)
    for (let at = bytesWritten; at < length;)
      at += (await write(this.#open(), whole, at, length - at, this.end + at)).bytesWritten
  }

  /** Rejects with the system's errors. */
  async sync(): Promise<void> {
    const upTo = this.end
    if (!this.#isOwn) this.#writeAgain()
    await fdatasync(this.#open())
    this.synced = Math.max(this.synced, upTo)
  }

  /** False: the file was removed or replaced. */
  isInPlace(): boolean {
    return inodeAt(this.path) === fs.fstatSync(this.#open()).ino
  }

  close(): void {
    if (this.#fd !== undefined) fs.closeSync(this.#fd)
    this.#fd = undefined
  }

  /** What a former process could not sync counts as synced until it is written once more. */
  #writeAgain(): void {
    const tail = this.read(this.synced, this.end - this.synced)
    this.close()
    this.#fd = fs.openSync(this.path, O_RDWR | O_NOFOLLOW)
    for (let at = 0; at < tail.byteLength;)
      at += fs.writeSync(this.#fd, tail, at, tail.byteLength - at, this.synced + at)
    this.#isOwn = true
  }

  #open(): number {
    return (this.#fd ??= fs.openSync(this.path, O_RDONLY | O_NOFOLLOW))
  }
}
