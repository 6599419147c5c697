import type { Random } from './random.ts'

/** What parsers trip over: structure, ends, lengths without end, what looks like another token. */
const words = [
  '{', '}', '[', ']', '"', '\\', ',', ':', 'null', '{}', '[]', '""', '\\u0000', '\\ud800', '\0', '\n', '\r\n', ' ', '1e999',
  '-0', '9007199254740993', '"items":[', '"rows":[', '"items":null,', '"metadata":{}', '"kind":"PodList",', '"kind":null,',
  '"apiVersion":"v1",', '"continue":"x",', '"resourceVersion":"0"', '"__proto__":{}', '{"type":"ADDED","object":', '\ufeff',
].map((text) => Buffer.from(text)) // prettier-ignore

const binary = [
  'ffffffff', '00000000', 'ffffffff0f', 'ffffffffffffffffff01', '80808080808080808000', '7fffffff', '01000000', '00ffffff',
  '12ffffff7f', '12808080807f', '0a00', '1200', '0b', '0c', '08ff', '6b387300', '0a04', '80',
].map((text) => Buffer.from(text, 'hex')) // prettier-ignore

/**
 * `bytes` changed in one to five places; sometimes not at all. `others` are what a piece may be
 * taken from.
 */
export function mutated(random: Random, bytes: Buffer, others: readonly Buffer[]): Buffer {
  let changed = bytes
  for (let times = random.below(6); times > 0; times--)
    changed = mutatedOnce(random, changed, others)
  return changed
}

function mutatedOnce(random: Random, bytes: Buffer, others: readonly Buffer[]): Buffer {
  const at = random.below(bytes.length + 1)
  const length = random.below(random.of([2, 8, 64, 1024])) + 1
  const replaced = (by: Uint8Array, gone: number): Buffer =>
    Buffer.concat([bytes.subarray(0, at), by, bytes.subarray(at + gone)])
  switch (random.below(10)) {
    case 0:
      return replaced(Buffer.from([(bytes[at] ?? 0) ^ (1 << random.below(8))]), 1)
    case 1:
      return replaced(Buffer.alloc(0), length)
    case 2:
      return replaced(bytes.subarray(at, at + length), 0)
    case 3:
      return replaced(random.of(words), random.below(2) * length)
    case 4:
      return replaced(random.of(binary), random.below(2) * 4)
    case 5:
      return replaced(random.bytes(Math.min(length, 16)), random.below(2) * length)
    case 6:
      return bytes.subarray(0, at)
    case 7:
      return replaced(
        Buffer.from(random.of(['[', '{"a":', '\x12\x04']).repeat(random.of([3, 200, 12_000]))),
        0,
      )
    case 8: {
      const other = random.of(others)
      const from = random.below(other.length + 1)
      return replaced(other.subarray(from, from + length), random.below(2) * length)
    }
    default:
      return neighboursSwapped(bytes, at, length)
  }
}

const neighboursSwapped = (bytes: Buffer, at: number, length: number): Buffer =>
  Buffer.concat([
    bytes.subarray(0, at),
    bytes.subarray(at + length, at + 2 * length),
    bytes.subarray(at, at + length),
    bytes.subarray(at + 2 * length),
  ])

/**
 * `bytes` in up to a dozen chunks, each in memory of its own, as a socket would have it; some of
 * one byte, some empty.
 */
export function chunked(random: Random, bytes: Buffer): Buffer[] {
  const cuts = Array.from({ length: random.below(12) }, () => random.below(bytes.length + 1))
  const near = random.below(bytes.length + 1)
  if (random.once(2))
    cuts.push(near, Math.min(near + 1, bytes.length), Math.min(near + 2, bytes.length))
  const places = [0, ...cuts.sort((a, b) => a - b), bytes.length]
  return places.slice(1).map((end, i) => Buffer.from(bytes.subarray(places[i], end)))
}
