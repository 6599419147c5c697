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
import { dialWithoutWindow, startFlooded, type Flooded } from '../kit/flooding.ts'
import { field, frame, getFields } from '../kit/http2-frames.ts'
import { openStream } from '../kit/http2.ts'
import { wholeReply } from '../kit/listener.ts'
import { inTime } from '../kit/until.ts'
import type { Teardown, Wire } from '../kit/wire/wire.ts'

t.setTimeout(300_000)

const mebi = 1024 * 1024

const main = join(import.meta.dirname, '..', 'kit', 'listener-main.ts')

const longHead = Buffer.concat([getFields, field(12_000)])

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

/** The most that a process has had in memory since it began. */
const mostResident = (pid: number): number =>
  Number(/^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

/**
 * What a process with little memory takes more under the attack where no caller is proven on so
 * many connections at most; it answers after that.
 */
async function grownBy(t: Teardown, mostUnproven: number): Promise<number> {
  const small = ['--max-old-space-size=64', '--max-semi-space-size=1']
  const child = spawn(process.execPath, [...small, main, String(mostUnproven)], {
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
    const unbounded = await grownBy(t, 1_000)
    const bounded = await grownBy(t, 8)
    t.ok(unbounded - bounded > 24 * mebi, `${bounded} bytes, and ${unbounded} without a limit`)
    t.ok(bounded < 64 * mebi, `${bounded} bytes`)
  },
)

void t.test('after a 401 a connection takes no more streams', async (t) => {
  const flooded = await startFlooded(t, async () => ({ ...wholeReply('no'), status: 401 }))
  const session = nodeAt(t, flooded)
  const leaving = once(session, 'goaway')
  t.equal((await openStream(session, { ':path': '/' }).whole()).status, 401)
  await leaving
})
