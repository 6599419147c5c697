/** The bytes of `parts` in one buffer; a single part is returned uncopied. */
export function joined(parts: readonly Uint8Array[]): Buffer {
  const [only] = parts
  if (parts.length === 1 && only) return asBuffer(only)
  return Buffer.concat(parts)
}

/** The same memory as a Buffer. */
export const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The total length of `parts`. */
export const lengthOf = (parts: readonly Uint8Array[]): number =>
  parts.reduce((sum, part) => sum + part.byteLength, 0)
