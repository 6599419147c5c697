import { readFileSync } from 'node:fs'

/** The bytes of an answer that a kube-apiserver gave. */
export const fixture = (name: string): Buffer =>
  readFileSync(new URL(`../fixtures/${name}`, import.meta.url))

/** `bytes` cut in two at every place, and once into single bytes. */
export function* everySplit(bytes: Buffer): Generator<Buffer[]> {
  for (let at = 0; at <= bytes.length; at++) yield [bytes.subarray(0, at), bytes.subarray(at)]
  yield [...bytes].map((byte) => Buffer.from([byte]))
}
