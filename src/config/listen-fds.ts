import { listeningSockets } from '../base/listening-sockets.ts'
import { inodeOf } from '../base/socket-table.ts'
import type { PassedSocket } from './passed-sockets.ts'

/** The first file descriptor that is passed (SD_LISTEN_FDS_START). */
const first = 3

/** More sockets than any unit passes; a larger LISTEN_FDS is ignored. */
const most = 64

export type Environment = Readonly<Record<string, string | undefined>>

/** This process and its parent. */
export interface ProcessIds {
  readonly pid: number
  readonly ppid: number
}

/**
 * The sockets that were passed to this process (sd_listen_fds(3)): LISTEN_FDS of them, named by
 * LISTEN_FDNAMES, for the process LISTEN_PID. A hub cannot know its successor's pid in advance and
 * names itself in LISTEN_PPID instead. None if they are for another process.
 */
export function passedSockets(
  env: Environment,
  { pid, ppid }: ProcessIds,
  listeningAt?: (fd: number) => PassedSocket['at'],
): readonly PassedSocket[] {
  const ours = env['LISTEN_PID'] === String(pid) || isSuccessor(env, { pid, ppid })
  const count = Number(env['LISTEN_FDS'] ?? 0)
  if (!ours || !(count >= 1 && count <= most)) return []
  const names = env['LISTEN_FDNAMES']?.split(':') ?? []
  const find = listeningAt ?? ownListeningSockets()
  return Array.from({ length: count }, (_, i) => ({
    fd: first + i,
    name: names[i] ?? '',
    at: find(first + i),
  }))
}

/** Whether a hub started this process as its successor in a hot restart. */
export const isSuccessor = (env: Environment, { ppid }: ProcessIds): boolean =>
  env['LISTEN_PID'] === undefined && env['LISTEN_PPID'] === String(ppid)

/** The environment of a child of process `pid` that receives sockets of these names. */
export function withPassedSockets(
  env: Environment,
  names: readonly string[],
  pid: number,
): Environment {
  const { LISTEN_PID: _, ...rest } = env
  return {
    ...rest,
    LISTEN_PPID: String(pid),
    LISTEN_FDS: String(names.length),
    LISTEN_FDNAMES: names.join(':'),
  }
}

/**
 * Why this process cannot be hot-restarted; `undefined` if no obstacle is known. A supervisor of
 * this very process would take its end for the end of the hub.
 */
export function hotRestartObstacle(
  env: Environment,
  { pid, ppid }: ProcessIds,
): string | undefined {
  if (pid === 1) return 'this is process 1 of a container, which ends with it'
  // Before version 248 systemd does not set its pid, but it is the parent.
  const systemds =
    env['SYSTEMD_EXEC_PID'] === String(pid) ||
    (env['SYSTEMD_EXEC_PID'] === undefined && env['INVOCATION_ID'] !== undefined && ppid === 1)
  return systemds
    ? 'systemd watches this process: use `systemctl restart`, with a socket unit to hold the sockets'
    : undefined
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
