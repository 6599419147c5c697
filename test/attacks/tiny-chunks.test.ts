import t from 'tap'
/**
 * Bodies in chunks of one byte: Node makes a buffer of some 300 bytes for each, and counts one
 * byte. Waiting bodies of callers with invented tokens, and one body of a review without a
 * certificate, held hundreds of MiB.
 */
import type { Incoming } from '../../src/http/exchange/exchange.ts'
import { limits } from '../../src/http/server/limits.ts'
import { wholeRequestBody } from '../../src/http/exchange/request-body.ts'
import { heldBytes } from '../kit/held-bytes.ts'
import { startFlooded } from '../kit/flooding.ts'
import { frame, get as getOver2, postFields } from '../kit/http2-frames.ts'
import { provenAs, wholeReply, startListener } from '../kit/listener.ts'
import { until } from '../kit/until.ts'
import type { Wire } from '../kit/wire/wire.ts'

const mebi = 1024 * 1024
const head = 'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n'
const chunks = (count: number): Buffer => Buffer.from('1\r\nx\r\n'.repeat(count))
const unread = (): Promise<never> => new Promise(() => undefined)

/**
 * What the process holds more once `arrived` says that as many bytes have come as are to come, all
 * in parts of one byte, on each of 4 connections.
 */
async function heldBy(
  dial: () => Promise<Wire>,
  { sent, arrived, bytes }: { sent: Buffer; arrived: () => readonly number[]; bytes: number },
): Promise<number> {
  const wires = await Promise.all(Array.from({ length: 4 }, dial))
  const before = heldBytes()
  for (const wire of wires) wire.write(sent)
  const all = (): boolean => arrived().length === 4 && arrived().every((each) => each >= bytes)
  await until('all to arrive', all, { describe: arrived })
  return heldBytes() - before
}

const unreadOf = (seen: readonly Incoming[]) => () =>
  seen.map(({ body }) => body?.readableLength ?? 0)

void t.test('of chunks that wait to be read few are read ahead', async (t) => {
  const { dial, seen } = await startListener(t, provenAs(unread))
  const sent = Buffer.concat([Buffer.from(head), chunks(100_000)])
  const held = await heldBy(dial, { sent, arrived: unreadOf(seen), bytes: limits.bodyBytes })
  t.ok(held < 40 * mebi, `${held} bytes`)
})

void t.test('of frames that wait to be read few are read ahead', async (t) => {
  const seen: Incoming[] = []
  const handler = (incoming: Incoming): Promise<never> => (seen.push(incoming), unread())
  const { dial } = await startFlooded(t, provenAs(handler))
  const frames = Array.from({ length: limits.bodyBytes }, () => frame(0, 0, 3, Buffer.from('x')))
  // The first request proves the caller.
  const known = async (): Promise<Wire> => {
    const wire = (await dial()).write(getOver2(1))
    await until('the first requests', () => seen.length >= 4)
    return wire
  }
  const sent = Buffer.concat([frame(1, 4, 3, postFields), ...frames])
  const arrived = (): readonly number[] => unreadOf(seen.filter(({ body }) => body))()
  const held = await heldBy(known, { sent, arrived, bytes: limits.bodyBytes })
  t.ok(held < 40 * mebi, `${held} bytes`)
})

void t.test('bodies that are read whole hold little more than their bytes', async (t) => {
  const parts: number[] = []
  const { dial } = await startListener(t, async ({ body, onProven }) => {
    onProven?.(true)
    const at = parts.push(0) - 1
    body?.on('data', (part: Buffer) => (parts[at] = (parts[at] ?? 0) + part.byteLength))
    if (body) await wholeRequestBody(body, 8 * mebi)
    return wholeReply('ok')
  })
  const sent = Buffer.concat([Buffer.from(head), chunks(100_000)])
  const held = await heldBy(dial, { sent, arrived: () => parts, bytes: 100_000 })
  t.ok(held < 16 * mebi, `${held} bytes`)
})
