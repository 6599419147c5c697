/**
 * A client that reaches a TLS listener can open HTTP/2 connections with incomplete heads, many long
 * heads at once, and unread answers. The hub bounds the memory of all connections together.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type ClientHttp2Session } from 'node:http2'
import t from 'tap'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Incoming, WireReply } from '../../src/http/exchange/exchange.ts'
import { nodeIdentity } from '../../src/api/request/identity.ts'
import { dialWithoutWindow, startFlooded, type Flooded } from '../kit/flooding.ts'
import { field, frame, getFields } from '../kit/http2-frames.ts'
import { openStream } from '../kit/http2.ts'
import { scriptedReply, wholeReply } from '../kit/listener.ts'
import { inTime } from '../kit/until.ts'
import type { Teardown, Wire } from '../kit/wire/wire.ts'

t.setTimeout(300_000)

const mebi = 1024 * 1024

const main = join(import.meta.dirname, '..', 'kit', 'listener-main.ts')

/** The node is served, others wait for an answer for as long as they like. */
const served = async (incoming: Incoming): Promise<WireReply> => {
  if (!incoming.url.startsWith('/node')) return new Promise(() => undefined)
  incoming.onProven?.(nodeIdentity)
  return incoming.url === '/node/watch'
    ? scriptedReply((sink) => void sink.write(longHead))
    : wholeReply('ok')
}

const longHead = Buffer.concat([getFields, field(12_000)])

/**
 * A field that enters the HPACK table, and is then referred to two thousand times by one byte each;
 * the head does not end.
 */
const smallFields = Buffer.concat([
  getFields,
  Buffer.from('4001610162', 'hex'),
  Buffer.alloc(1_900, 0xbe),
])

function nodeAt(t: Teardown, { listener, ca }: Flooded): ClientHttp2Session {
  const session = connect(`https://127.0.0.1:${listener.port}`, { ca })
  t.teardown(() => session.destroy())
  return session
}

/** Writes, and waits until the listener has read all of it, or has closed the connection. */
async function sent(client: Wire, bytes: Buffer): Promise<void> {
  client.write(Buffer.concat([bytes, frame(6, 0, 0, Buffer.from('all read'))]))
  await Promise.race([client.until('all read').catch(() => undefined), client.closed])
}

void t.test(
  'many long heads at once on many connections hold no more than their share',
  async (t) => {
    let most = 0
    const flooded: Flooded = await startFlooded(
      t,
      (incoming) => {
        most = Math.max(most, flooded.memory.heldBytes('unproven'))
        return served(incoming)
      },
      { limitBytes: 8 * mebi },
    )
    const session = nodeAt(t, flooded)
    const watch = session.request({ ':path': '/node/watch' })
    await once(watch, 'data')
    const heads = Array.from({ length: 80 }, (_, i) => frame(1, 5, 2 * i + 1, longHead))
    const attackers = await Promise.all(Array.from({ length: 24 }, () => flooded.dial()))
    for (const client of attackers) await sent(client, Buffer.concat(heads))
    t.ok(most > 2 * mebi, 'it was tried')
    t.ok(most <= 4 * mebi, `${most} bytes were held`)
    t.strictSame(new Set(flooded.cuts), new Set(['memory']))
    t.equal((await openStream(session, { ':path': '/node' }).whole()).body, 'ok')
    t.notOk(watch.closed, 'the node is none of those who make room')
  },
)

void t.test('the connection that holds the most memory is closed first', async (t) => {
  const flooded = await startFlooded(t, served, { limitBytes: 4 * mebi })
  const modest = await flooded.dial()
  await sent(modest, frame(1, 5, 1, getFields))
  const greedy = await flooded.dial()
  await sent(
    greedy,
    Buffer.concat(Array.from({ length: 99 }, (_, i) => frame(1, 5, 2 * i + 1, longHead))),
  )
  const more = await flooded.dial()
  await sent(
    more,
    Buffer.concat(Array.from({ length: 50 }, (_, i) => frame(1, 5, 2 * i + 1, longHead))),
  )
  await greedy.closed
  await sent(modest, frame(1, 5, 3, getFields))
  t.notOk(modest.socket.destroyed)
})

void t.test('the memory of unfinished heads is counted as they arrive', async (t) => {
  const flooded = await startFlooded(t, served, { limitBytes: 4 * mebi })
  const attackers: Wire[] = []
  for (let i = 0; i < 40; i++) {
    attackers.push((await flooded.dial()).write(frame(1, 1, 1, smallFields)))
  }
  await attackers[0]?.closed
  t.ok(flooded.memory.heldBytes('unproven') <= 2 * mebi)
  const session = nodeAt(t, flooded)
  t.equal((await openStream(session, { ':path': '/node' }).whole()).body, 'ok')
  const open = attackers.filter(({ socket }) => !socket.destroyed)
  t.ok(open.length <= 8, `${open.length} are open`)
})

/** The most that a process has had in memory since it began. */
const mostResident = (pid: number): number =>
  Number(/^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

/**
 * What a process with little memory takes more under the attack where connections may hold
 * `limitBytes`; it answers after that.
 */
async function grownBy(t: Teardown, limitBytes: number): Promise<number> {
  const small = ['--max-old-space-size=64', '--max-semi-space-size=1']
  const child = spawn(process.execPath, [...small, main, String(limitBytes)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const { port, ca } = JSON.parse(line) as { readonly port: number; readonly ca: string }
  const before = mostResident(child.pid ?? 0)
  const heads = Buffer.concat(
    Array.from({ length: 80 }, (_, i) => frame(1, 5, 2 * i + 1, longHead)),
  )
  const attack = async (): Promise<void> => {
    for (let i = 0; i < 24; i++) await sent(await dialWithoutWindow(t, port, ca), heads)
  }
  await Promise.all(Array.from({ length: 4 }, attack))
  const session = connect(`https://127.0.0.1:${port}`, { ca })
  t.teardown(() => session.destroy())
  const livez = await inTime('livez', openStream(session, { ':path': '/livez' }).whole())
  if (livez.body !== 'ok') throw new Error('livez is not ok')
  return mostResident(child.pid ?? 0) - before
}

void t.test(
  'under attack the process grows no more than its connections may hold',
  { skip: process.platform !== 'linux' && 'only Linux tells what a process has had' },
  async (t) => {
    const unbounded = await grownBy(t, Number.POSITIVE_INFINITY)
    const bounded = await grownBy(t, 8 * mebi)
    t.ok(unbounded - bounded > 24 * mebi, `${bounded} bytes, and ${unbounded} without a limit`)
    t.ok(bounded < 64 * mebi, `${bounded} bytes`)
  },
)

void t.test(
  'after a 401 a connection takes no more streams, unless it is the node’s',
  async (t) => {
    const flooded = await startFlooded(
      t,
      async (incoming) =>
        incoming.url === '/node' ? served(incoming) : { ...wholeReply('no'), status: 401 },
      { limitBytes: 64 * mebi },
    )
    const proven = nodeAt(t, flooded)
    for (const [path, status] of [
      ['/node', 200],
      ['/', 401],
      ['/node', 200],
    ] as const) {
      t.equal((await openStream(proven, { ':path': path }).whole()).status, status)
    }
    const unproven = nodeAt(t, flooded)
    const leaving = once(unproven, 'goaway')
    t.equal((await openStream(unproven, { ':path': '/' }).whole()).status, 401)
    await leaving
    t.notOk(proven.closed)
  },
)
