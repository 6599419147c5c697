/** A frame of HTTP/2 (RFC 9113 section 4.1). */
export function frame(
  type: number,
  flags: number,
  stream: number,
  payload = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** GET or POST, https, / and an authority, by the static table of HPACK. */
export const getFields = Buffer.from('8287844103687562', 'hex')
export const postFields = Buffer.from('8387844103687562', 'hex')

/** A whole GET on a stream. */
export const get = (stream: number): Buffer => frame(1, 5, stream, getFields)

/** HPACK: a field named x that is not kept in the table. */
export function field(bytes: number): Buffer {
  const more: number[] = []
  let rest = bytes - 127
  for (; rest >= 128; rest = Math.floor(rest / 128)) more.push((rest % 128) + 128)
  return Buffer.concat([Buffer.from([0, 1, 0x78, 127, ...more, rest]), Buffer.alloc(bytes, 'a')])
}
