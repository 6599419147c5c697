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

/** How much of a table is read at a time; the kernel returns a page at most. */
const chunkBytes = 64 << 10

const [newline, colon] = [0x0a, 0x3a]

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
    return await establishedWith(ends, async (into, from) => {
      if (elapsed() > sliceEnd) {
        await turn()
        sliceEnd = elapsed() + sliceMs
      }
      if (elapsed() > end) throw new TableTooLong(path)
      return readSync(file, into, from, into.length - from, null)
    })
  } finally {
    closeSync(file)
  }
}

/**
 * For each of `ends` (local, a space, remote) the first line of an established socket with these
 * ends. `read` copies more of the table into a buffer, from an offset on, and returns how much, 0
 * at the end; it is called until all are found. Compares the local port only and decodes no other
 * line: any user can create tens of thousands of them.
 */
export async function establishedWith(
  ends: Iterable<string>,
  read: (into: Buffer, from: number) => Promise<number>,
): Promise<string> {
  const wanted = new Set(ends)
  const ports = new Set(
    Array.from(wanted, (each) => Number.parseInt(each.split(/[: ]/)[1] ?? '', 16)),
  )
  const chunk = Buffer.allocUnsafe(chunkBytes)
  let found = ''
  let held = 0
  while (wanted.size > 0) {
    const end = held + (await read(chunk, held))
    if (end === held) break
    let start = 0
    for (let stop = chunk.indexOf(newline); stop >= 0 && stop < end;) {
      const port = localPortAt(chunk, start)
      if (port < stop && ports.has(hexadecimal(chunk, port))) {
        const line = chunk.toString('latin1', start, stop + 1)
        if (wanted.delete(endsIfEstablished(line))) found += line
      }
      start = stop + 1
      stop = chunk.indexOf(newline, start)
    }
    // A chunk without a line's end holds no socket.
    held = end - start < chunkBytes ? chunk.copy(chunk, 0, start, end) : 0
  }
  return found
}

/**
 * The position of the local port in a line that begins at `start`: after the slot and the address.
 */
const localPortAt = (chunk: Buffer, start: number): number =>
  chunk.indexOf(colon, chunk.indexOf(colon, start) + 1) + 1

const endsIfEstablished = (line: string): string => /^ *\d+: (\S+ \S+) 01 /.exec(line)?.[1] ?? ''

/** The number of four digits in hexadecimal, in upper case. */
function hexadecimal(bytes: Uint8Array, at: number): number {
  let number = 0
  for (let i = at; i < at + 4; i++) {
    const digit = bytes[i] ?? 0
    number = number * 16 + (digit < 0x41 ? digit - 0x30 : digit - 0x37)
  }
  return number
}

/**
 * The inode of a socket of this process by its file descriptor; `undefined` for any other file, or
 * without /proc.
 */
export function inodeOf(fd: number): string | undefined {
  try {
    return inodeIn(readlinkSync(`/proc/self/fd/${fd}`))
  } catch {
    return undefined
  }
}

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
