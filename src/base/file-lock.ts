import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  constants,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { basename, dirname } from 'node:path'
import { elapsed, pause } from './clock.ts'

const { O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_RDONLY, O_RDWR } = constants

/** A lock is taken: by another process, or another part of this one. */
export class LockTaken extends Error {
  readonly code = 'TAKEN'
  /** Which process has it, where that is known. */
  readonly pid: number | undefined

  constructor(message: string, pid: number | undefined, cause?: unknown) {
    super(message, { cause })
    this.pid = pid
  }
}

/**
 * Locks `path` against other processes, and other parts of this one, until it is disposed of or the
 * process ends in whatever way: it listens on a Unix socket beside the file. The kernel finds the
 * socket by its file: it counts between containers, too, that have the folder mounted. Rejects with
 * `LockTaken`. Two that begin at once may both be refused.
 */
export async function takeLock(path: string): Promise<Disposable> {
  using held = new DisposableStack()
  // Programs of the host find the holder by what it has open.
  const file = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
  held.defer(() => closeSync(file))
  const sockets = held.use(socketsBeside(path))
  const own = `${sockets.prefix}${process.pid}.${pidNamespace()}.${randomUUID().slice(0, 8)}`
  const server = createServer((socket) => socket.destroy()).listen(`${sockets.folder}/${own}`)
  await once(server, 'listening')
  held.defer(() => server.close())
  chmodSync(`${sockets.folder}/${own}`, 0o600)
  // That the kernel takes connections is enough.
  server.unref().on('error', () => undefined)
  // Not before it listens itself: of two that begin at once, the later one sees the other.
  const others = sockets.names().filter((name) => name !== own)
  const holder = await firstAlive(sockets, others)
  if (holder !== undefined) throw new LockTaken(`${path} is locked`, pidIn(holder))
  for (const name of others) rmSync(`${sockets.folder}/${name}`, { force: true })
  return held.move()
}

/** Whether another process has locked `path`. It changes nothing. */
export async function isLocked(path: string): Promise<boolean> {
  using sockets = socketsBeside(path)
  return (await firstAlive(sockets, sockets.names())) !== undefined
}

interface Patience {
  readonly ms: number
  readonly signal?: AbortSignal
  /** Called before the first wait. */
  readonly onTaken?: (cause: LockTaken) => void
}

const betweenMs = 200

/**
 * Calls `take` until it no longer rejects with `LockTaken`. Rejects with that after so long, and
 * with the reason of the signal.
 */
export async function onceFree<T>(
  take: () => Promise<T>,
  { ms, signal, onTaken }: Patience,
): Promise<T> {
  let isFirst = true
  for (const begun = elapsed(); ;) {
    try {
      return await take()
    } catch (cause) {
      if (!(cause instanceof LockTaken) || elapsed() - begun >= ms) throw cause
      if (isFirst) onTaken?.(cause)
      isFirst = false
    }
    await pause(betweenMs, signal)
    signal?.throwIfAborted()
  }
}

/** The sockets by which a file is locked. */
interface Sockets extends Disposable {
  readonly folder: string
  readonly prefix: string
  names(): string[]
}

/** By the number of the open folder, their paths are short enough however deep it is. */
function socketsBeside(path: string): Sockets {
  const open = openSync(dirname(path), O_RDONLY | O_DIRECTORY)
  const folder = `/proc/self/fd/${open}`
  const prefix = `${basename(path)}.`
  return {
    folder,
    prefix,
    names: () => readdirSync(folder).filter((name) => name.startsWith(prefix) && ending.test(name)),
    [Symbol.dispose]: () => closeSync(open),
  }
}

/** Process, its PID namespace, and what tells several locks of one process apart. */
const ending = /\.(\d+)\.(\d+)\.[0-9a-f]{8}$/

const pidNamespace = (): string => readlinkSync('/proc/self/ns/pid').replaceAll(/\D+/g, '')

/** `undefined`: the process is in another namespace. */
function pidIn(name: string): number | undefined {
  const [, pid, namespace] = ending.exec(name) ?? []
  return namespace === pidNamespace() ? Number(pid) : undefined
}

/** The first of the sockets on which a process listens. */
async function firstAlive(
  { folder }: Sockets,
  names: readonly string[],
): Promise<string | undefined> {
  for (const name of names) if (await isAlive(`${folder}/${name}`)) return name
  return undefined
}

/** The kernel refuses connections to the socket of a process that has ended. */
async function isAlive(socket: string): Promise<boolean> {
  const connection = connect(socket)
  try {
    await once(connection, 'connect')
    return true
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException
    return !['ECONNREFUSED', 'ENOENT'].includes(code)
  } finally {
    connection.destroy()
  }
}
