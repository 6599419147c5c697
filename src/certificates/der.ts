// The part of ASN.1's Distinguished Encoding Rules (X.690) that certificates use.

/** One element: its tag, its length, its content. */
function element(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents)
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.byteLength), content])
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return Buffer.from([0x80 | bytes.length, ...bytes])
}

export const sequence = (...contents: readonly Uint8Array[]): Buffer => element(0x30, ...contents)

/** A SET of one element, as in names. */
export const set = (content: Uint8Array): Buffer => element(0x31, content)

export const octets = (content: Uint8Array): Buffer => element(0x04, content)

/** Whole bytes. */
export const bits = (content: Uint8Array): Buffer => element(0x03, Buffer.from([0]), content)

/** Named bits by their number, without trailing zeros as DER requires. */
export function namedBits(numbers: readonly number[]): Buffer {
  const last = Math.max(...numbers)
  const bytes = Buffer.alloc(Math.floor(last / 8) + 1)
  for (const number of numbers) {
    const at = Math.floor(number / 8)
    bytes[at] = (bytes[at] ?? 0) | (0x80 >> (number % 8))
  }
  return element(0x03, Buffer.from([7 - (last % 8)]), bytes)
}

export const utf8 = (text: string): Buffer => element(0x0c, Buffer.from(text))

export const yes: Buffer = element(0x01, Buffer.from([0xff]))

/** A positive number of any length, big-endian. */
export function integer(bytes: Uint8Array): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  const shortest = bytes.subarray(start)
  const negative = ((shortest[0] ?? 0) & 0x80) !== 0
  return element(0x02, negative ? Buffer.from([0]) : Buffer.alloc(0), shortest)
}

/** `1.2.840.10045.4.3.2` */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return element(0x06, Buffer.from([40 * first + second, ...rest.flatMap(base128)]))
}

function base128(number: number): number[] {
  const digits = [number & 0x7f]
  for (let rest = number >> 7; rest > 0; rest >>= 7) digits.unshift((rest & 0x7f) | 0x80)
  return digits
}

/** UTCTime until 2049, GeneralizedTime after (RFC 5280 section 4.1.2.5). */
export function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\..*/g, '')
  return Number(digits.slice(0, 4)) < 2050
    ? element(0x17, Buffer.from(`${digits.slice(2)}Z`))
    : element(0x18, Buffer.from(`${digits}Z`))
}

/** A context-specific constructed element. */
export const explicit = (number: number, content: Uint8Array): Buffer =>
  element(0xa0 | number, content)

/** A context-specific primitive element. */
export const implicit = (number: number, content: Uint8Array): Buffer =>
  element(0x80 | number, content)
