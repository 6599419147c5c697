import { listeningSockets } from '../base/listening-sockets.ts'
import { inodeOf } from '../base/socket-table.ts'
import type { PassedSocket } from './passed-sockets.ts'

/** The first file descriptor that is passed (SD_LISTEN_FDS_START). */
const first = 3

/** More sockets than any unit passes; a larger LISTEN_FDS is ignored. */
const most = 64

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The sockets that were passed to this process (sd_listen_fds(3)): LISTEN_FDS of them, for the
 * process LISTEN_PID. None if they are for another process.
 */
export function passedSockets(
  env: Environment,
  pid: number,
  listeningAt?: (fd: number) => PassedSocket['at'],
): readonly PassedSocket[] {
  const count = Number(env['LISTEN_FDS'] ?? 0)
  if (env['LISTEN_PID'] !== String(pid) || !(count >= 1 && count <= most)) return []
  const find = listeningAt ?? ownListeningSockets()
  return Array.from({ length: count }, (_, i) => ({
    fd: first + i,
    at: find(first + i),
  }))
}

/**
 * Returns where sockets of this process listen: Node reports only those that it has opened. The
 * kernel's table is read once.
 */
function ownListeningSockets(): (fd: number) => PassedSocket['at'] {
  const sockets = new Map(listeningSockets().map((socket) => [socket.inode, socket]))
  return (fd) => {
    const found = sockets.get(inodeOf(fd) ?? '')
    return found && { address: found.address, port: found.port }
  }
}
