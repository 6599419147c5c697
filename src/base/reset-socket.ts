import type { Socket } from 'node:net'

/**
 * Resets a connection, or closes it where its end is being sent: Node cannot reset such a socket,
 * never closes it then, and stays alive for it.
 */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
