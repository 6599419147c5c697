import { Readable } from 'node:stream'
import t from 'tap'
import { turn } from '../../../src/base/clock.ts'
import { mergeParts } from '../../../src/http/server/merged-parts.ts'

void t.test('parts that are put together take about as much as they hold', async (t) => {
  const stream = new Readable({ read: () => undefined })
  mergeParts(stream, () => undefined)
  const passed: Buffer[] = []
  stream.on('data', (part: Buffer) => passed.push(part))
  for (const count of [2, 3, 100]) {
    for (let i = 0; i < count; i++) stream.push(Buffer.from('x'))
    await turn()
  }
  t.strictSame(passed.map(String), ['xx', 'xxx', 'x'.repeat(100)])
  for (const part of passed) t.ok(part.buffer.byteLength <= 2 * part.byteLength)
})
