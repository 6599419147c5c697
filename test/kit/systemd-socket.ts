import { mkdirSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import type { Teardown } from './wire/wire.ts'

export interface SystemdSocket {
  /** The units that it was asked to restart. */
  readonly restarted: string[]
  /** How jobs end. */
  result: string
  /** What a restart does, besides being counted. */
  restart: (unit: string) => Promise<void>
}

/**
 * The socket of a systemd below `root`, as far as a restart needs it: it takes root's word, answers
 * RestartUnit with a job, and says when the job has been removed.
 */
export async function startSystemdSocket(t: Teardown, root: string): Promise<SystemdSocket> {
  const path = join(root, 'run/systemd/private')
  mkdirSync(dirname(path), { recursive: true })
  const systemd: SystemdSocket = {
    restarted: [],
    result: 'done',
    restart: () => Promise.resolve(),
  }
  const server = createServer((socket) => {
    let text = ''
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      const before = text
      text += chunk.toString('latin1')
      if (!before.includes('\r\n') && text.startsWith('\0AUTH EXTERNAL 30\r\n'))
        socket.write('OK 0123\r\n')
      if (!text.includes('RestartUnit') || before.includes('RestartUnit')) return
      const unit = /[\w-]+\.service/.exec(text)?.[0] ?? ''
      systemd.restarted.push(unit)
      void systemd.restart(unit).then(() => answer(socket, unit, systemd.result))
    })
  })
  server.listen(path)
  await once(server, 'listening')
  t.teardown(() => server.close())
  return systemd
}

const job = '/org/freedesktop/systemd1/job/7'

function answer(socket: Socket, unit: string, result: string): void {
  // A signal of another job comes first, and one byte at a time.
  const messages = [
    message(4, [[3, 's', 'JobRemoved']], 'uoss', [1, `${job}0`, 'x.service', 'done']),
    result === 'unknown'
      ? message(3, [[5, 'u', 2]], 's', [`Unit ${unit} not found.`])
      : message(2, [[5, 'u', 2]], 'o', [job]),
    message(4, [[3, 's', 'JobRemoved']], 'uoss', [7, job, unit, result]),
  ]
  for (const byte of Buffer.concat(messages)) socket.write(Buffer.from([byte]))
}

type Field = readonly [code: number, type: 's' | 'u', value: string | number]

/** A message of the D-Bus specification, in little-endian byte order. */
function message(
  type: number,
  fields: readonly Field[],
  signature: string,
  values: readonly (string | number)[],
): Buffer {
  const header = new Bytes()
  for (const [code, kind, value] of fields) {
    header.align(8)
    header.add([code, 1, kind.charCodeAt(0), 0])
    header.value(value)
  }
  header.align(8)
  header.add([8, 1, 'g'.charCodeAt(0), 0, signature.length, ...Buffer.from(`${signature}\0`)])
  const body = new Bytes()
  for (const value of values) body.value(value)
  const all = new Bytes()
  all.add(['l'.charCodeAt(0), type, 0, 1])
  all.value(body.bytes.length)
  all.value(9)
  all.value(header.bytes.length)
  all.add(header.bytes)
  all.align(8)
  all.add(body.bytes)
  return Buffer.from(all.bytes)
}

class Bytes {
  readonly bytes: number[] = []

  add(more: readonly number[]): void {
    this.bytes.push(...more)
  }

  align(to: number): void {
    while (this.bytes.length % to > 0) this.bytes.push(0)
  }

  value(value: string | number): void {
    this.align(4)
    const number = Buffer.alloc(4)
    number.writeUInt32LE(typeof value === 'number' ? value : Buffer.byteLength(value))
    this.add([...number])
    if (typeof value === 'string') this.add([...Buffer.from(`${value}\0`)])
  }
}
