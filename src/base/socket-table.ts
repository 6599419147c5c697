import { closeSync, openSync, readlinkSync, readSync } from 'node:fs'
import type { Socket } from 'node:net'
import { elapsed, turn } from './clock.ts'

/** A line of the kernel's table of TCP sockets; the ends are as the kernel prints them. */
export interface SocketLine {
  readonly local: string
  readonly remote: string
  readonly state: string
  readonly uid: number
  /** `0`: the owner has closed the socket. */
  readonly inode: string
}

/** States of sockets as the kernel prints them (include/net/tcp_states.h). */
export const established = '01'
export const listening = '0A'

/** The sockets in a table as `/proc/net/tcp` and `/proc/net/tcp6` have them (proc_net(5)). */
export function* socketsIn(table: string): Generator<SocketLine> {
  for (const line of table.split('\n')) {
    const columns = line.trim().split(/\s+/)
    const [slot = '', local = '', remote = '', state = '', , , , uid, , inode] = columns
    // The first line has the column headings.
    const isSocket = /^\d+:$/.test(slot) && inode !== undefined
    if (isSocket) yield { local, remote, state, uid: Number(uid), inode }
  }
}

/** How much of a table is read at a time: the kernel returns a page at most. No line is longer. */
const chunkBytes = 4 << 10

/** A reading has failed after this. 60,000 sockets take a quarter of a second of an idle core. */
export const mostReadingMs = 5_000

/** A table that any user has made too long. */
class TableTooLong extends Error {
  readonly code = 'SOCKET_TABLE_TOO_LONG'
  constructor(path: string) {
    super(`${path} was not read in ${mostReadingMs / 1_000} seconds`)
  }
}

/** After so long in one turn of the event loop others are served. */
export const sliceMs = 4

/**
 * The lines that `establishedWith` finds in the table at `path`, which is opened after the call.
 * The kernel makes its lines while they are read, a page a call: tens of microseconds, of as many
 * pages as any user has made. A turn for each page would take seconds while turns are long, so it
 * is read in slices of `sliceMs`.
 */
export async function establishedAt(path: string, ends: Iterable<string>): Promise<string> {
  const file = openSync(path, 'r')
  try {
    const end = elapsed() + mostReadingMs
    let sliceEnd = elapsed() + sliceMs
    const chunk = Buffer.allocUnsafe(chunkBytes)
    return await establishedWith(ends, async () => {
      if (elapsed() > sliceEnd) {
        await turn()
        sliceEnd = elapsed() + sliceMs
      }
      if (elapsed() > end) throw new TableTooLong(path)
      return chunk.toString('latin1', 0, readSync(file, chunk))
    })
  } finally {
    closeSync(file)
  }
}

/**
 * For each of `ends` (local, a space, remote) the first line of an established socket with these
 * ends. `read` returns more of the table, '' at the end; it is called until all are found.
 */
export async function establishedWith(
  ends: Iterable<string>,
  read: () => Promise<string>,
): Promise<string> {
  const wanted = new Set(ends)
  let found = ''
  let rest = ''
  while (wanted.size > 0) {
    const text = await read()
    if (text === '') break
    const lines = (rest + text).split('\n')
    rest = (lines.pop() ?? '').slice(0, chunkBytes)
    for (const line of lines) {
      const at = line.indexOf(':') + 2
      const end = line.indexOf(` ${established} `, at)
      if (end > 0 && wanted.delete(line.slice(at, end))) found += `${line}\n`
    }
  }
  return found
}

/** The target of a link; `undefined` where there is none, or it may not be read. */
export function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/**
 * The inode of a socket of this process by its file descriptor; `undefined` for any other file, or
 * without /proc.
 */
export const inodeOf = (fd: number): string | undefined =>
  inodeIn(linkAt(`/proc/self/fd/${fd}`) ?? '')

/**
 * The inode of a connected socket of Node's, with TLS or without. After it closes, the file
 * descriptor may be another file's.
 */
export function inodeOfSocket(socket: Socket): string | undefined {
  // Node has no public API for it.
  const { _handle: handle } = socket as { readonly _handle?: { readonly fd?: number } | null }
  return handle?.fd === undefined ? undefined : inodeOf(handle.fd)
}

/** The inode of a socket by the link of its file descriptor; `undefined` for any other file. */
export const inodeIn = (link: string): string | undefined => /^socket:\[(\d+)\]$/.exec(link)?.[1]
