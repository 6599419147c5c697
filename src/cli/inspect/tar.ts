/** POSIX ustar with plain files alone, which `tar -tf` lists. */

const blockBytes = 512
/** The longest name of a header, and the largest size that its 11 octal digits hold. */
const longestName = 100
const largest = 8 ** 11 - 1

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
  // The checksum is of the header with spaces in its place.
  block.fill(' ', 148, 156)
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  )
  block.write('\0 ', 154, 'latin1')
  return block
}

/** The padding after a content of `size` bytes. */
export const tarPadding = (size: number): Buffer => Buffer.alloc(-size & (blockBytes - 1))

/** The end of an archive. */
export const tarEnd = (): Buffer => Buffer.alloc(2 * blockBytes)
