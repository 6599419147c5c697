import { writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { now } from '../../base/clock.ts'
import { scrubbed } from '../log.ts'
import { tarEnd, tarHeader, tarPadding } from './tar.ts'

/** The bounds of one file of a bundle, and of all of them together, before they are compressed. */
const bundleBounds = { file: 4 * 1024 * 1024, all: 32 * 1024 * 1024 }

/** The end of a file that was cut. */
const cut = '\n[cut: this file was longer]\n'

/** Bootstrap tokens, and passwords of URLs; in a log these shapes would hide too much. */
const furtherSecrets = /\b[a-z0-9]{6}\.[a-z0-9]{16}\b|(?<=\/\/)[^/@\s"]{1,1000}@/g

const withoutSecrets = (text: string): string =>
  scrubbed(text).replace(furtherSecrets, '[redacted]')

/** The texts of a bundle, each without secrets, as a compressed tar archive. */
export class Archive {
  readonly #parts: Buffer[] = []
  readonly #names: string[] = []
  #bytes = 0

  /** The files so far, in their order. */
  get names(): readonly string[] {
    return this.#names
  }

  /** Cuts a text that is too long; throws where the archive is full. */
  add(name: string, text: string): void {
    const content = Buffer.from(withoutSecrets(text))
    const kept =
      content.byteLength <= bundleBounds.file
        ? content
        : Buffer.concat([content.subarray(0, bundleBounds.file - cut.length), Buffer.from(cut)])
    if (this.#bytes + kept.byteLength > bundleBounds.all) throw new Error('the bundle is full')
    this.#bytes += kept.byteLength
    this.#names.push(name)
    const size = kept.byteLength
    this.#parts.push(tarHeader(`nodehub-bundle/${name}`, size, now()), kept, tarPadding(size))
  }

  /** Writes a new file that only its owner may read, and returns its size. */
  write(file: string): number {
    const packed = gzipSync(Buffer.concat([...this.#parts, tarEnd()]))
    try {
      writeFileSync(file, packed, { flag: 'wx', mode: 0o600 })
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
      throw new Error(`${file} exists already: give another --file, or remove it`, { cause })
    }
    return packed.byteLength
  }
}
