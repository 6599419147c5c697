import { connect, type Socket } from 'node:net'
import { afterUnlessClosed } from '../../base/clock.ts'

/** The socket at which systemd answers root alone, below the root of its host. */
export const systemdSocket = '/run/systemd/private'

/** systemd ends a start job after a minute and a half by default. */
const patienceMs = 120_000

/**
 * Restarts a unit of the systemd whose socket this is, as `systemctl restart` does, for a caller
 * in a container, which has no systemctl of the host. Resolves to the reason of a failure when the
 * job has ended; `undefined` on success.
 */
export async function restartUnit(socketPath: string, unit: string): Promise<string | undefined> {
  const socket = connect(socketPath)
  afterUnlessClosed(socket, patienceMs, () => socket.destroy(new Error('systemd did not answer')))
  try {
    // Root's uid in hexadecimal ASCII, as EXTERNAL has it (D-Bus specification, 0.43).
    socket.write('\0AUTH EXTERNAL 30\r\nBEGIN\r\n')
    socket.write(methodCall(1, 'Subscribe', []))
    socket.write(methodCall(2, 'RestartUnit', [unit, 'replace']))
    return await resultOf(socket)
  } catch (cause) {
    return `${socketPath}: ${cause instanceof Error ? cause.message : String(cause)}`
  } finally {
    socket.destroy()
  }
}

/** Reads messages until the job of the restart has ended. */
async function resultOf(socket: Socket): Promise<string | undefined> {
  let pending: Buffer = Buffer.alloc(0)
  let isAuthenticated = false
  let job: string | undefined
  const ended = new Map<string, string>()
  for await (const chunk of socket) {
    pending = Buffer.concat([pending, chunk as Buffer])
    if (!isAuthenticated) {
      const end = pending.indexOf('\r\n')
      if (end < 0) continue
      const line = pending.toString('latin1', 0, end)
      if (!line.startsWith('OK ')) throw new Error(`systemd refused: ${line}`)
      isAuthenticated = true
      pending = pending.subarray(end + 2)
    }
    for (;;) {
      const message = messageIn(pending)
      if (message === undefined) break
      pending = pending.subarray(message.length)
      const { type, isJobRemoved, body } = message
      if (type === errorType) return body[0] ?? 'systemd refused'
      // Subscribe is answered by nothing.
      if (type === replyType && body.length > 0) job = body[0]
      // Job, unit, result.
      if (isJobRemoved) ended.set(body[0] ?? '', body[2] ?? '')
      const result = job === undefined ? undefined : ended.get(job)
      if (result !== undefined) return result === 'done' ? undefined : `the job ended: ${result}`
    }
  }
  throw new Error('systemd closed the connection')
}

/** Types of messages. */
const [replyType, errorType] = [2, 3]

interface Message {
  readonly type: number
  readonly isJobRemoved: boolean
  /** The texts of a reply, an error or JobRemoved, without the number before these. */
  readonly body: readonly string[]
  /** Of the whole message, in bytes. */
  readonly length: number
}

const aligned = (at: number, to: number): number => Math.ceil(at / to) * to

/** More than systemd sends. */
const longest = 1024 * 1024

/** The first message; `undefined` where it has not arrived whole. */
function messageIn(bytes: Buffer): Message | undefined {
  if (bytes.length < 16) return undefined
  if (bytes[0] !== 'l'.charCodeAt(0)) throw new Error('systemd answered in another byte order')
  const begin = aligned(16 + bytes.readUInt32LE(12), 8)
  const length = begin + bytes.readUInt32LE(4)
  if (length > longest) throw new Error('systemd answered with too long a message')
  if (bytes.length < length) return undefined
  const type = bytes.readUInt8(1)
  const isJobRemoved = bytes.subarray(16, begin).includes('JobRemoved\0')
  const body: string[] = []
  const isMeant = isJobRemoved || type === replyType || type === errorType
  for (let at = begin + (isJobRemoved ? 4 : 0); isMeant && at < length;) {
    const { text, end } = stringAt(bytes, at)
    body.push(text)
    at = end
  }
  return { type, isJobRemoved, body, length }
}

function stringAt(bytes: Buffer, from: number): { readonly text: string; readonly end: number } {
  const at = aligned(from, 4)
  const size = bytes.readUInt32LE(at)
  return { text: bytes.toString('utf8', at + 4, at + 4 + size), end: at + 4 + size + 1 }
}

/** A call of systemd's manager with strings (D-Bus specification, "Message Protocol"). */
function methodCall(serial: number, member: string, args: readonly string[]): Buffer {
  const body = args.reduce<Buffer>(withString, Buffer.alloc(0))
  const signature = 's'.repeat(args.length)
  const fields = [
    [1, 'o', '/org/freedesktop/systemd1'],
    [2, 's', 'org.freedesktop.systemd1.Manager'],
    [3, 's', member],
    [6, 's', 'org.freedesktop.systemd1'],
    ...(args.length > 0 ? ([[8, 'g', signature]] as const) : []),
  ] as const
  const header = fields.reduce<Buffer>((bytes, [code, type, text]) => {
    const head = Buffer.concat([padded(bytes, 8), Buffer.from([code, 1, type.charCodeAt(0), 0])])
    return type === 'g'
      ? Buffer.concat([head, Buffer.from([text.length]), Buffer.from(`${text}\0`)])
      : withString(head, text)
  }, Buffer.alloc(0))
  const fixed = Buffer.alloc(16)
  fixed.write('l')
  fixed.writeUInt8(1, 1)
  fixed.writeUInt8(1, 3)
  fixed.writeUInt32LE(body.length, 4)
  fixed.writeUInt32LE(serial, 8)
  fixed.writeUInt32LE(header.length, 12)
  return Buffer.concat([fixed, padded(header, 8), body])
}

const padded = (bytes: Buffer, to: number): Buffer =>
  Buffer.concat([bytes, Buffer.alloc(aligned(bytes.length, to) - bytes.length)])

function withString(bytes: Buffer, text: string): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt32LE(Buffer.byteLength(text))
  return Buffer.concat([padded(bytes, 4), size, Buffer.from(`${text}\0`)])
}
