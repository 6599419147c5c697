import * as fs from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** The format that this release writes, and the newest one that it reads. */
export const format = 2

/** The first record of a segment. */
export interface SegmentRecord {
  readonly kind: 'segment'
  readonly format: number
  /** The first segment of which the records count; of earlier ones only bodies are in use. */
  readonly from: number
  /** Where the segment before ends: what follows there was refused, or torn. */
  readonly before: number
}

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_RDWR } = fs.constants
const write = promisify(fs.write)
const fdatasync = promisify(fs.fdatasync)
const unlink = promisify(fs.unlink)
/** Called for each event: `promisify` would take longer. Resolves to the number of bytes. */
const writev = (fd: number, parts: readonly Uint8Array[], at: number): Promise<number> =>
  new Promise((resolve, reject) => {
    fs.writev(fd, parts, at, (cause, written) => (cause ? reject(cause) : resolve(written)))
  })

/** `undefined`: there is no such file. */
const inodeAt = (path: string): number | undefined =>
  fs.statSync(path, { throwIfNoEntry: false })?.ino

/** A file of the log. */
export class Segment {
  readonly id: number
  readonly path: string
  /** Bytes of frames that count. */
  end = 0
  /** Up to here it is on the disk. */
  synced = 0
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
    const bytesWritten = await writev(this.#open(), parts, this.end)
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

/** Numbers of the segments in a folder, in order. */
export const segmentsIn = (folder: string): number[] =>
  (fs.existsSync(folder) ? fs.readdirSync(folder) : [])
    .filter((name) => /^\d{10}\.log$/.test(name))
    .map((name) => Number(name.slice(0, 10)))
    .toSorted((a, b) => a - b)

/** The segments of the log. */
export class LogFolder {
  readonly path: string
  readonly segments = new Map<number, Segment>()
  #inode: number | undefined

  constructor(path: string) {
    this.path = path
    this.#inode = inodeAt(path)
  }

  /** False: it, or what is written to, was removed or replaced. */
  isInPlace(): boolean {
    const written = this.segments.get(this.newest)
    this.#inode ??= inodeAt(this.path)
    return inodeAt(this.path) === this.#inode && written?.isInPlace() !== false
  }

  /** One that may be there, or not any more. */
  segment(id: number): Segment {
    const name = `${String(id).padStart(10, '0')}.log`
    const segment = this.segments.get(id) ?? new Segment(id, join(this.path, name))
    this.segments.set(id, segment)
    return segment
  }

  /** Throws the system's errors, and where the segment is gone. */
  read(id: number, offset: number, length: number): Buffer {
    const segment = this.segments.get(id)
    if (!segment) throw new Error(`segment ${id} of ${this.path} is gone`)
    return segment.read(offset, length)
  }

  get newest(): number {
    return Math.max(0, ...this.segments.keys())
  }

  get bytes(): number {
    let bytes = 0
    for (const { end } of this.segments.values()) bytes += end
    return bytes
  }

  /**
   * Resolves when the file is removed: until then no other may have its number. Errors are ignored:
   * it is removed later.
   */
  async remove(id: number): Promise<void> {
    const segment = this.segments.get(id)
    if (!segment) return
    this.segments.delete(id)
    segment.close()
    // In the pool: the kernel takes milliseconds to free the file's pages.
    await unlink(segment.path).catch(() => undefined)
  }

  /** Makes names durable. */
  async sync(): Promise<void> {
    await using folder = await fs.promises.open(this.path, 'r')
    await folder.sync()
  }

  close(): void {
    for (const segment of this.segments.values()) segment.close()
    this.segments.clear()
  }
}
