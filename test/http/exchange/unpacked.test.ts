import t from 'tap'
import { gzipSync } from 'node:zlib'
import { unpacked } from '../../../src/http/exchange/unpacked.ts'

type Group = readonly Uint8Array[]

async function* of(groups: readonly Group[]): AsyncGenerator<Group> {
  yield* groups
}

async function read(...groups: Group[]): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const group of unpacked(of(groups), () => undefined)) parts.push(...group)
  return Buffer.concat(parts)
}

const text = Buffer.from(Array.from({ length: 30_000 }, (_, i) => `line ${i}\n`).join(''))
const packed = gzipSync(text)

void t.test('a body is the same however it was split', async (t) => {
  for (const size of [1, 7, 4096, packed.length]) {
    const parts: Uint8Array[] = []
    for (let at = 0; at < packed.length; at += size) parts.push(packed.subarray(at, at + size))
    t.ok((await read(parts)).equals(text), `all at once, in parts of ${size}`)
    if (size > 1)
      t.ok((await read(...parts.map((part) => [part]))).equals(text), `in turn, ${size}`)
  }
})

void t.test('a highly compressed body is inflated only as it is read', async (t) => {
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))
  let inflated = 0
  const parts = unpacked(of([[bomb]]), (_packed, bytes) => {
    inflated += bytes
  })
  for (let taken = 0, i = 0; i < 5; i++) {
    const { value } = await parts.next()
    taken += (value as Group)[0]?.byteLength ?? 0
    t.equal(inflated, taken)
    t.ok(taken <= (i + 1) * 128 * 1024)
  }
  await parts.return(undefined)
})

void t.test('a broken source fails, and a reader that stops releases it', async (t) => {
  async function* broken(): AsyncGenerator<Group> {
    yield [packed.subarray(0, 100)]
    throw new Error('reset')
  }
  const reading = async (): Promise<void> => {
    for await (const _ of unpacked(broken(), () => undefined)) continue
  }
  await t.rejects(reading(), { message: 'reset' })
  let left = false
  async function* long(): AsyncGenerator<Group> {
    try {
      yield [packed.subarray(0, packed.length >> 1)]
      yield [packed.subarray(packed.length >> 1)]
    } finally {
      left = true
    }
  }
  for await (const _ of unpacked(long(), () => undefined)) break
  t.equal(left, true)
})
