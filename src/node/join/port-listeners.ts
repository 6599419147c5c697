import {
  describeListener,
  listeningSockets,
  socketsAt,
  type ListeningSocket,
} from '../../base/listening-sockets.ts'
import type { HubPorts } from './static-pod.ts'

const root = 0

/**
 * The programs that listen on loopback at the hub's ports, as texts for an operator: those of root,
 * among which may be the hub itself, and others.
 */
export function portListeners(ports: HubPorts): {
  readonly byRoot: readonly string[]
  readonly byOthers: readonly string[]
} {
  const all = listeningSockets()
  const sockets = new Map<string, ListeningSocket>()
  for (const port of [ports.proxy, ports.secure, ports.ops]) {
    for (const address of ['127.0.0.1', '::1']) {
      for (const socket of socketsAt({ address, port }, all)) sockets.set(socket.inode, socket)
    }
  }
  const { byRoot = [], byOthers = [] } = Object.groupBy(sockets.values(), ({ uid }) =>
    uid === root ? 'byRoot' : 'byOthers',
  )
  return { byRoot: byRoot.map(describeListener), byOthers: byOthers.map(describeListener) }
}
