/** What one entry of a tar archive is: a file, a folder or a symbolic link. */
export type TarEntry = { readonly path: string; readonly mode?: number } & (
  { readonly data: Uint8Array } | { readonly folder: true } | { readonly link: string }
)

const block = 512

/**
 * A tar archive (POSIX ustar) owned by root and dated at the epoch: the same entries are the same
 * bytes.
 */
export function tar(entries: readonly TarEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap(entryBlocks), Buffer.alloc(2 * block)])
}

function entryBlocks(entry: TarEntry): Uint8Array[] {
  const data = 'data' in entry ? entry.data : Buffer.alloc(0)
  const padding = (block - (data.byteLength % block)) % block
  return [header(entry, data.byteLength), data, Buffer.alloc(padding)]
}

function header(entry: TarEntry, size: number): Buffer {
  const bytes = Buffer.alloc(block)
  const octal = (value: number, at: number, length: number): void =>
    void bytes.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at)
  if (Buffer.byteLength(entry.path) > 100) throw new RangeError(`${entry.path}: too long for ustar`)
  bytes.write(entry.path, 0)
  octal(entry.mode ?? ('data' in entry ? 0o644 : 0o755), 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(size, 124, 12)
  octal(0, 136, 12)
  bytes.write('folder' in entry ? '5' : 'link' in entry ? '2' : '0', 156)
  if ('link' in entry) bytes.write(entry.link, 157)
  bytes.write('ustar\x0000', 257)
  // The checksum is taken with its own field full of spaces.
  bytes.fill(' ', 148, 156)
  const sum = bytes.reduce((total, byte) => total + byte, 0)
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return bytes
}
