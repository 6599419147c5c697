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
import { frame, preface } from './http2-frames.ts'
import type { Pair } from './wire/certificates.ts'

export type Flooding =
  | {
      readonly as: 'client'
      /** `settings` without end; or requests by `connect` that do not end, and it leaves. */
      readonly by: 'settings' | 'connect'
      readonly port: number
      readonly connections: number
      readonly atOnce: number
    }
  | { readonly as: 'server'; readonly shows: Pair }

const host = '127.0.0.1'
const ALPNProtocols = ['h2']

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
      if (task.by === 'settings') await floodOver(socket, () => some)
      else await leaveMalformed(socket)
    }
  }
  await Promise.all(Array.from({ length: task.atOnce }, oneByOne))
} else {
  const server = createServer({ ...task.shows, ALPNProtocols }, (socket: TLSSocket) => {
    socket.on('error', () => undefined)
    socket.write(frame(4, 0, 0))
    // The first request is what a flood answers.
    socket.once('data', () => socket.resume() && setImmediate(() => flood(socket)))
  })
  server.listen(0, host, () => parentPort?.postMessage((server.address() as AddressInfo).port))
}

/** HPACK: a field whose name and value have less than 127 bytes, kept in no table. */
function field(name: string, value: string): Buffer {
  const [nameLength, valueLength] = [name, value].map(({ length }) => String.fromCharCode(length))
  return Buffer.from(`\0${nameLength}${name}${valueLength}${value}`, 'latin1')
}

async function leaveMalformed(socket: TLSSocket): Promise<void> {
  const closed = new Promise((resolve) => void socket.once('close', resolve))
  const head = Buffer.concat([field(':method', 'CONNECT'), field(':authority', '127.0.0.1')])
  const requests = Array.from({ length: 50 }, (_, at) => frame(1, 4, 2 * at + 1, head))
  socket.resume().write(Buffer.concat([preface, frame(4, 0, 0), ...requests]))
  // Some of them have been answered by then.
  setTimeout(() => socket.destroy(), 60)
  await closed
}

function flood(socket: TLSSocket): void {
  if (socket.destroyed) return
  socket.write(some, () => setImmediate(() => flood(socket)))
}
