import { readlinkSync } from 'node:fs'

/** A line of the kernel's table of TCP sockets; its ends as the kernel prints them. */
export interface SocketLine {
  readonly local: string
  readonly remote: string
  readonly state: string
  readonly uid: number
  /** `0`: its owner has closed it. */
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
    // The heads of the columns stand above.
    const isSocket = /^\d+:$/.test(slot) && inode !== undefined
    if (isSocket) yield { local, remote, state, uid: Number(uid), inode }
  }
}

/** The inode of a socket of this process by its file descriptor; `undefined` for any other file, or where proc(5) is not there. */
export function inodeOf(fd: number): string | undefined {
  try {
    return inodeIn(readlinkSync(`/proc/self/fd/${fd}`))
  } catch {
    return undefined
  }
}

/** The inode of a socket by what the link of its file descriptor says; `undefined` for any other file. */
export const inodeIn = (link: string): string | undefined => /^socket:\[(\d+)\]$/.exec(link)?.[1]
