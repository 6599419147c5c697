import { close, existsSync, fsync, open, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { inodeAt, Segment } from './body.ts'

/** Numbers of the segments in a folder, in order. */
export const segmentsIn = (folder: string): number[] =>
  (existsSync(folder) ? readdirSync(folder) : [])
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

  get newest(): number {
    return Math.max(0, ...this.segments.keys())
  }

  get bytes(): number {
    let bytes = 0
    for (const { end } of this.segments.values()) bytes += end
    return bytes
  }

  /** Removes the file. Errors are ignored: it is removed later. */
  remove(segment: Segment): void {
    this.segments.delete(segment.id)
    segment.close()
    try {
      rmSync(segment.path, { force: true })
    } catch {
      return
    }
  }

  /** Makes names durable. */
  async sync(): Promise<void> {
    const fd = await promisify(open)(this.path, 'r')
    try {
      await promisify(fsync)(fd)
    } finally {
      await promisify(close)(fd)
    }
  }

  close(): void {
    for (const segment of this.segments.values()) segment.close()
    this.segments.clear()
  }
}
