/**
 * Peers in a thread of their own, so that what they send comes while the other end is at work:
 * `workerData` says as what they flood, and where. Ends when a client has made its connections; a
 * server goes on until it is terminated, and posts its port first.
 */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { parentPort, workerData } from 'node:worker_threads'
import { floodOver, settingsFrames } from './flooding.ts'
import { frame } from './http2-frames.ts'
import type { Pair } from './wire/certificates.ts'

export type Flooding =
  | { readonly as: 'client'; readonly port: number; readonly connections: number }
  | { readonly as: 'server'; readonly shows: Pair }

const host = '127.0.0.1'
const ALPNProtocols = ['h2']

/** How many connections of a client there are at a time. */
const atOnce = 4

/** Few enough that nghttp2 sees that there are too many while it answers those before. */
const some = settingsFrames(40)

const task = workerData as Flooding
if (task.as === 'client') {
  let left = task.connections
  const oneByOne = async (): Promise<void> => {
    while (left-- > 0) {
      const socket = connect({ port: task.port, host, rejectUnauthorized: false, ALPNProtocols })
      socket.on('error', () => undefined)
      await once(socket, 'secureConnect')
      await floodOver(socket, () => some)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, oneByOne))
} else {
  const server = createServer({ ...task.shows, ALPNProtocols }, (socket: TLSSocket) => {
    socket.on('error', () => undefined)
    socket.write(frame(4, 0, 0))
    // The first request is what a flood answers.
    socket.once('data', () => socket.resume() && setImmediate(() => flood(socket)))
  })
  server.listen(0, host, () => parentPort?.postMessage((server.address() as AddressInfo).port))
}

function flood(socket: TLSSocket): void {
  if (socket.destroyed) return
  socket.write(some, () => setImmediate(() => flood(socket)))
}
