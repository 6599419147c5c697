import type { FileHandle } from 'node:fs/promises'

/** POSIX ustar with plain files alone, which `tar -tf` lists. */

const blockBytes = 512
const chunkBytes = 1 << 20
/** The longest name of a header, and the largest size that its 11 octal digits hold. */
const longestName = 100
const largest = 8 ** 11 - 1

/** The archive cannot be used. */
export class MalformedArchive extends Error {
  readonly code = 'MALFORMED_ARCHIVE'
}

/** A file in an archive. */
export interface TarEntry {
  readonly name: string
  readonly size: number
  /** Where its content begins in the archive. */
  readonly offset: number
}

/** The header of a file that only its owner reads. */
export function tarHeader(name: string, size: number, modifiedMs: number): Buffer {
  if (Buffer.byteLength(name) > longestName || size > largest)
    throw new Error(`${name} of ${size} bytes does not fit into an archive`)
  const block = Buffer.alloc(blockBytes)
  const octal = (value: number, at: number, digits: number): void => {
    block.write(value.toString(8).padStart(digits, '0'), at, 'latin1')
  }
  block.write(name, 0)
  octal(0o600, 100, 7)
  octal(0, 108, 7)
  octal(0, 116, 7)
  octal(size, 124, 11)
  octal(Math.floor(modifiedMs / 1000), 136, 11)
  block.write('0ustar\x0000', 156, 'latin1')
  octal(checksumOf(block), 148, 6)
  block.write('\0 ', 154, 'latin1')
  return block
}

/** The padding after a content of `size` bytes. */
export const tarPadding = (size: number): Buffer => Buffer.alloc(-size & (blockBytes - 1))

/** The end of an archive. */
export const tarEnd = (): Buffer => Buffer.alloc(2 * blockBytes)

/**
 * The files of an archive in their order. Throws `MalformedArchive` at any header that `tarHeader`
 * would not write: a link, a folder, a device, a damaged header, an early end.
 */
export async function* tarEntries(archive: FileHandle): AsyncGenerator<TarEntry> {
  const { size: end } = await archive.stat()
  const block = Buffer.alloc(blockBytes)
  for (let at = 0; ;) {
    const { bytesRead } = await archive.read(block, 0, blockBytes, at)
    if (bytesRead < blockBytes) throw new MalformedArchive('it ends early')
    if (block.every((byte) => byte === 0)) return
    const { name, size } = parsedHeader(block)
    const offset = at + blockBytes
    at = offset + size + tarPadding(size).byteLength
    if (at > end) throw new MalformedArchive(`it ends within ${name}`)
    yield { name, size, offset }
  }
}

function parsedHeader(block: Buffer): { readonly name: string; readonly size: number } {
  const text = (from: number, to: number): string =>
    block.toString('utf8', from, to).split('\0', 1)[0] ?? ''
  const octal = (from: number, to: number): number => {
    const digits = text(from, to).trim()
    if (!/^[0-7]+$/.test(digits)) throw new MalformedArchive('a header in it is damaged')
    return parseInt(digits, 8)
  }
  if (octal(148, 156) !== checksumOf(block)) {
    throw new MalformedArchive('it is no archive of nodehub backup, or a header in it is damaged')
  }
  const name = text(0, longestName)
  const type = text(156, 157)
  if ((type !== '0' && type !== '') || text(345, 500) !== '')
    throw new MalformedArchive(`${JSON.stringify(name)} in it is no plain file`)
  return { name, size: octal(124, 136) }
}

/** Of the header with spaces in place of the checksum. */
const checksumOf = (block: Buffer): number =>
  block.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0)

/** The content of a file of known place and size, in chunks; throws where the file is shorter. */
export async function* chunksOf(
  file: FileHandle,
  { offset, size }: Pick<TarEntry, 'offset' | 'size'>,
): AsyncGenerator<Buffer> {
  for (let done = 0; done < size;) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, size - done))
    const { bytesRead } = await file.read(chunk, 0, chunk.byteLength, offset + done)
    if (bytesRead === 0) throw new MalformedArchive('it ends early')
    done += bytesRead
    yield chunk.subarray(0, bytesRead)
  }
}
