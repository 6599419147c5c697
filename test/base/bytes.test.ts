import t from 'tap'
import { BufferPool } from '../../src/base/bytes.ts'

const kibibytes = (count: number, letter: string): Buffer => Buffer.alloc(count * 1024, letter)

void t.test('parts come joined, in order, in as few chunks as buffers hold', async (t) => {
  const pool = new BufferPool()
  const parts = ['a', 'b', 'c', 'd', 'e'].map((letter) => kibibytes(20, letter))
  const chunks = [...pool.joined(parts)]
  t.strictSame(
    chunks.map(({ byteLength }) => byteLength / 1024),
    [40, 40, 20],
  )
  t.equal(Buffer.concat(chunks).equals(Buffer.concat(parts)), true)
  t.strictSame([...pool.joined([])], [])
  t.strictSame([...pool.joined([Buffer.alloc(0), Buffer.alloc(0)])], [], 'nor of no bytes')
})

void t.test('a part that is longer than a buffer is not copied', async (t) => {
  const long = kibibytes(100, 'l')
  const chunks = [...new BufferPool().joined([kibibytes(1, 'a'), long, kibibytes(1, 'b')])]
  t.strictSame(
    chunks.map(({ byteLength }) => byteLength / 1024),
    [1, 100, 1],
  )
  t.equal(chunks[1]?.buffer, long.buffer)
})

void t.test('memory is written again once it is released, and not before', async (t) => {
  const pool = new BufferPool()
  const join = (letter: string) => [...pool.joined([kibibytes(20, letter), kibibytes(20, letter)])]
  const [held] = join('h')
  const [released] = join('r')
  t.not(released?.buffer, held?.buffer)
  const release = released && pool.releaseOf(released)
  release?.()
  release?.()
  const [next] = join('n')
  t.equal(next?.buffer, released?.buffer)
  const [another] = join('a')
  t.not(another?.buffer, next?.buffer, 'released twice, written once')
  t.equal(held?.toString(), 'h'.repeat(40 * 1024))
})

void t.test('short chunks, and parts that were not copied, are none of its memory', async (t) => {
  const pool = new BufferPool()
  const own = kibibytes(40, 'o')
  for (const chunk of [...pool.joined([own]), ...pool.joined([own.subarray(0, 9), own])])
    pool.releaseOf(chunk)?.()
  const [short] = pool.joined([Buffer.from('a'), Buffer.from('b')])
  t.equal(short?.byteLength, 2)
  if (short) pool.releaseOf(short)?.()
  const [next] = pool.joined([kibibytes(20, 'n'), kibibytes(20, 'n')])
  for (const other of [own, short]) t.not(next?.buffer, other?.buffer)
  t.equal(own.toString(), 'o'.repeat(40 * 1024))
})

void t.test('a slow reader of a chunk holds twice its bytes at most', async (t) => {
  const pool = new BufferPool()
  const [whole] = pool.joined([kibibytes(28, 'a'), kibibytes(28, 'b')])
  const size = whole?.buffer.byteLength
  for (let count = 1; count < 28; count += 1) {
    const [chunk] = pool.joined([kibibytes(count, 'a'), kibibytes(count, 'b')])
    if (!chunk || chunk.buffer.byteLength !== size) continue
    t.ok(2 * chunk.byteLength >= chunk.buffer.byteLength, `${2 * count} KiB`)
  }
})
