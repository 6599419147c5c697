import { once } from 'node:events'
import type { Socket } from 'node:net'

/** Something with room for so much, as sockets and sinks are. */
interface Room {
  write(chunk: Uint8Array): boolean
  drained(): Promise<unknown>
}

/** More than fits into all buffers between the ends of a connection. */
const mostChunks = 256

/** Who has taken nothing for so long takes no more: no event tells that. */
const quietMs = 300

/**
 * Writes `chunk` again and again until no more is taken, and resolves with the number of chunks
 * that were written.
 */
export async function fill(room: Room, chunk: Uint8Array): Promise<number> {
  for (let chunks = 0; ;) {
    do chunks++
    while (room.write(chunk) && chunks < mostChunks)
    if (chunks >= mostChunks) return chunks
    const drained = room.drained().then(() => true)
    const quiet = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), quietMs))
    if (!(await Promise.race([drained, quiet]))) return chunks
  }
}

/** The same for a socket: `taken` bytes have left it. */
export async function fillSocket(
  socket: Socket,
  chunk: Uint8Array,
): Promise<{ readonly taken: number; readonly chunks: number }> {
  const room = {
    write: (some: Uint8Array) => socket.write(some),
    drained: () => once(socket, 'drain'),
  }
  const chunks = await fill(room, chunk)
  return { taken: socket.bytesWritten - socket.writableLength, chunks }
}
