/**
 * Bodies in chunks of one byte: Node makes a buffer of some 300 bytes for each, and counts one
 * byte. Waiting bodies of callers with invented tokens, and one body of a review without a
 * certificate, held hundreds of MiB. Each part costs some 4 microseconds: 300 connections with 64
 * KiB of them each held the hub up for 20 seconds.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import t, { type Test } from 'tap'
import { nodeIdentity } from '../../src/api/request/identity.ts'
import type { Incoming } from '../../src/http/exchange/exchange.ts'
import { limits } from '../../src/http/server/limits.ts'
import { wholeRequestBody } from '../../src/http/exchange/request-body.ts'
import { heldBytes } from '../kit/held-bytes.ts'
import { startFlooded } from '../kit/flooding.ts'
import { frame, get as getOver2, postFields } from '../kit/http2-frames.ts'
import { get, provenAs, upgrading, wholeReply, startListener, textOf } from '../kit/listener.ts'
import { inTime, until } from '../kit/until.ts'
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

void t.test('chunks that wait to be read hold little more than their bytes', async (t) => {
  const { dial, seen } = await startListener(t, provenAs(unread))
  const sent = Buffer.concat([Buffer.from(head), chunks(100_000)])
  const held = await heldBy(dial, { sent, arrived: unreadOf(seen), bytes: 90_000 })
  t.ok(held < 16 * mebi, `${held} bytes`)
})

void t.test('frames that wait to be read hold little more than their bytes', async (t) => {
  const seen: Incoming[] = []
  const handler = (incoming: Incoming): Promise<never> => (seen.push(incoming), unread())
  const { dial } = await startFlooded(t, provenAs(handler), { limitBytes: 64 * mebi })
  const frames = Array.from({ length: 60_000 }, () => frame(0, 0, 3, Buffer.from('x')))
  // The first request proves the caller.
  const known = async (): Promise<Wire> => {
    const wire = (await dial()).write(getOver2(1))
    await until('the first requests', () => seen.length >= 4)
    return wire
  }
  const sent = Buffer.concat([frame(1, 4, 3, postFields), ...frames])
  const arrived = (): readonly number[] => unreadOf(seen.filter(({ body }) => body))()
  const held = await heldBy(known, { sent, arrived, bytes: 50_000 })
  t.ok(held < 16 * mebi, `${held} bytes`)
})

void t.test('bodies that are read whole hold little more than their bytes', async (t) => {
  const parts: number[] = []
  const { dial } = await startListener(t, async ({ body, onProven }) => {
    onProven?.(nodeIdentity)
    const at = parts.push(0) - 1
    body?.on('data', (part: Buffer) => (parts[at] = (parts[at] ?? 0) + part.byteLength))
    if (body) await wholeRequestBody(body, 8 * mebi)
    return wholeReply('ok')
  })
  const sent = Buffer.concat([Buffer.from(head), chunks(100_000)])
  const held = await heldBy(dial, { sent, arrived: () => parts, bytes: 100_000 })
  t.ok(held < 16 * mebi, `${held} bytes`)
})

/** A body in parts of these sizes, as its reader gets it. */
async function passed(t: Test, sizes: readonly number[]): Promise<void> {
  const { dial } = await startListener(
    t,
    provenAs(async (incoming) => wholeReply(await textOf(incoming))),
  )
  const parts = sizes.map((size, i) => String.fromCodePoint(97 + (i % 26)).repeat(size))
  const wire = await dial()
  wire.write(head)
  wire.write(parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join(''))
  const { body } = await wire.write('0\r\n\r\n').answer()
  t.equal(body, parts.join(''))
}

/**
 * Bodies of such parts behind each other on one connection, until it is closed or everything has
 * come. How many parts Node gave to the hub, and why it was cut.
 */
async function flooded(
  t: Test,
  { bodies, parts, size, isProven = false }: Flood,
): Promise<{ readonly cuts: readonly string[]; readonly parts: number }> {
  let count = 0
  let ended = 0
  const { dial, cuts } = await startListener(t, ({ body, onProven }) => {
    if (isProven) onProven?.(nodeIdentity)
    const push = body?.push.bind(body)
    if (body && push) {
      body.push = (part) => {
        count += part === null ? 0 : 1
        return push(part)
      }
      body.resume().once('end', () => ended++)
    }
    return unread()
  })
  const part = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`
  const wire = (await dial()).write(`${head}${part.repeat(parts)}0\r\n\r\n`.repeat(bodies))
  let isClosed = false
  void wire.ended.then(() => (isClosed = true))
  await until('all of it, or the cut', () => ended === bodies || isClosed)
  return { cuts, parts: count }
}

interface Flood {
  readonly bodies: number
  readonly parts: number
  readonly size: number
  readonly isProven?: boolean
}

void t.test('of an unproven caller’s tiny body parts only a few are read', async (t) => {
  for (const [bodies, parts] of [
    [1, 10_000],
    [40, 250],
  ] as const) {
    const { cuts, parts: read } = await flooded(t, { bodies, parts, size: 1 })
    t.strictSame(cuts, ['parts'])
    t.equal(read, limits.bodyParts)
  }
})

void t.test('large body parts allow for a few tiny ones', async (t) => {
  let large = 0
  let tiny = 0
  const { dial, cuts } = await startListener(t, ({ body }) => {
    const push = body?.push.bind(body)
    if (body && push) {
      body.push = (part: Buffer | null) => {
        if (part && part.byteLength > 1) large++
        else if (part) tiny++
        return push(part)
      }
      body.resume()
    }
    return unread()
  })
  const part = `10000\r\n${'x'.repeat(65_536)}\r\n`
  const wire = (await dial()).write(head + part.repeat(16)).write(chunks(60_000))
  await inTime('the cut', wire.ended)
  t.strictSame(cuts, ['parts'])
  t.ok(large >= 16, `${large} large parts`)
  t.ok(tiny <= limits.bodyParts + 4 * large, `${tiny} tiny parts`)
})

/** How many parts of bodies Node's parsers have made buffers of. */
function countedParts(t: Test): { parts: number } {
  const counted = { parts: 0 }
  const seen = new Set<BodyParser>()
  const started = (message: unknown): void => {
    const { parser } = (message as { readonly socket: { readonly parser: BodyParser } }).socket
    if (seen.has(parser)) return
    seen.add(parser)
    const { kOnBody } = parser.constructor
    const onBody = parser[kOnBody]
    parser[kOnBody] = (part) => {
      counted.parts++
      return onBody?.call(parser, part)
    }
  }
  subscribe('http.server.request.start', started)
  t.teardown(() => unsubscribe('http.server.request.start', started))
  return counted
}

interface BodyParser {
  readonly constructor: { readonly kOnBody: number }
  [callback: number]: ((part: Buffer) => unknown) | undefined
}

void t.test('the rest of an answered request’s body is skipped', async (t) => {
  const { dial } = await startListener(t, async (incoming) =>
    incoming.url === '/refused' ? wholeReply('no') : wholeReply(await textOf(incoming)),
  )
  const counted = countedParts(t)
  const wire = (await dial()).write(head.replace('/', '/refused'))
  t.equal((await wire.answer()).body, 'no')
  for (let i = 0; i < 2; i++) {
    wire.write(Buffer.concat([chunks(20_000), Buffer.from('0\r\n\r\n')]))
    wire.write(`${head}3\r\nabc\r\n0\r\n\r\n`)
    t.equal((await wire.answer()).body, 'abc', 'the next one is read')
    t.equal(counted.parts, i + 1)
    wire.write(head.replace('/', '/refused'))
    t.equal((await wire.answer()).body, 'no')
  }
})

void t.test('a connection that sends too many tiny frames is cut', async (t) => {
  let read = 0
  const handler = ({ body }: Incoming): Promise<never> => {
    body?.on('data', (part: Buffer) => (read += part.byteLength))
    return unread()
  }
  const { dial, cuts } = await startFlooded(t, handler, { limitBytes: 64 * mebi })
  const frames = Array.from({ length: 6_000 }, () => frame(0, 0, 1, Buffer.from('x')))
  const wire = (await dial()).write(Buffer.concat([frame(1, 4, 1, postFields), ...frames]))
  await inTime('the cut', wire.ended)
  t.strictSame(cuts, ['parts'])
  t.ok(read <= limits.bodyParts, `${read} bytes`)
})

void t.test('a body behind an upgrade offer is limited, too', async (t) => {
  const { dial, cuts, seen } = await startListener(t, unread)
  const offer = head.replace('\r\n', '\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n')
  const wire = (await dial()).write(offer).write(chunks(10_000))
  await inTime('the cut', wire.ended)
  t.strictSame(cuts, ['parts'])
  t.strictSame(
    seen.map(({ upgrade }) => upgrade),
    [false],
  )
})

void t.test('a parser that was stopped reads the next connection’s bodies', async (t) => {
  const { dial, cuts } = await startListener(t, unread)
  for (const behind of ['', upgrading, get()]) {
    const sent = `${head}${'1\r\nx\r\n'.repeat(1_000)}0\r\n\r\n${behind}`
    await inTime('the cut', (await dial()).write(sent).ended)
    // Node has freed its parser by the time of the next connection.
    for (let i = 0; i < 3; i++) await passed(t, [1, 2, 3])
  }
  t.strictSame(cuts, ['parts', 'parts', 'parts'])
})

void t.test('large body parts, and those of proven callers, are read whole', async (t) => {
  for (const [size, isProven] of [
    // Some come in two parts, where a read ends within them.
    [2 * limits.bodyPartBytes, false],
    [1, true],
  ] as const) {
    const { cuts, parts } = await flooded(t, { bodies: 1, parts: 2_000, size, isProven })
    t.strictSame(cuts, [])
    t.ok(parts >= 2_000, `${parts} parts`)
  }
})

void t.test('merged parts arrive whole and in order', async (t) => {
  await passed(t, [1])
  await passed(t, [1, 2, 3, 2_000, 5, 1_023, 1_024, 1_025, 1])
  await passed(
    t,
    Array.from({ length: 10_000 }, (_, i) => 1 + (i % 7)),
  )
  await passed(t, [...Array.from({ length: 9 }, () => 1_000), 70_000, 1])
})
