import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { after } from '../../base/clock.ts'
import type { BoundSocket, SocketHandle } from './listening.ts'

/**
 * How many connections are accepted at each listening socket in one turn of the event loop. libuv
 * accepts one a turn for each descriptor that it watches. A turn in which hundreds of clients have
 * sent something takes some 10 ms, so with one descriptor a hundred connections a second fill the
 * queue of the socket, in which the kubelet's wait like all others; from a full queue the kernel
 * drops them, and clients try again after 1, 3 and 7 seconds. More than this let a flood in faster
 * than it can be refused: in the mixed attack (`npm run attack`) the p99 of the node's requests is
 * 200 ms with three, 405 ms with eight.
 */
export const acceptsPerTurn = 3

/** By when the child has to be done: it reads one small module, and sends descriptors. */
const patienceMs = 10_000

/** What the child is told: how often to send back the socket that comes with it. */
export type Times = number

/** What it answers with each: which socket it is, counted from 0. */
export type SocketIndex = number

/**
 * Accepts on further descriptors of `sockets`. Node duplicates a descriptor only on its way between
 * processes: a child sends back what it is sent, and ends. Resolves to why that failed, after which
 * each socket accepts as before; what came until then stays. Ends without a reason when one of the
 * sockets takes no more connections.
 */
export async function acceptOnMoreDescriptors(
  sockets: readonly BoundSocket[],
): Promise<string | undefined> {
  try {
    return await duplicated(sockets)
  } catch (cause) {
    // A child that cannot be started: Node throws some causes, and emits others.
    return (cause as Error).message
  }
}

async function duplicated(sockets: readonly BoundSocket[]): Promise<string | undefined> {
  const script = new URL(`./duplicating${extname(import.meta.url)}`, import.meta.url)
  const child = spawn(process.execPath, ['--disable-sigusr1', fileURLToPath(script)], {
    // Nothing of this process's own: neither its options of Node nor its secrets.
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  using _patience = after(patienceMs, () => child.kill('SIGKILL'))
  const passed = sockets.filter(({ handle }) => handle !== undefined)
  const accepting: Promise<void>[] = []
  let failure: string | undefined
  /**
   * With sockets still on their way back: a channel that is closed under one of them, instead of
   * by the other end, has Node throw where nobody can catch it.
   */
  const breakOff = (why?: string): void => {
    failure ??= why
    child.kill('SIGKILL')
  }
  child.on('message', (index: SocketIndex, handle) => {
    const socket = passed[index]
    if (handle && socket) accepting.push(socket.acceptOn(handle as unknown as SocketHandle))
    if (accepting.length === passed.length * (acceptsPerTurn - 1)) child.disconnect()
  })
  const isClosing = (): boolean => sockets.some(({ closing }) => closing.aborted)
  for (const { closing } of sockets) closing.addEventListener('abort', () => breakOff())
  child.once('spawn', () => {
    if (isClosing()) return breakOff()
    for (const { handle } of passed) {
      child.send(acceptsPerTurn - 1, handle as never, { keepOpen: true }, (error) => {
        if (error && !isClosing()) breakOff(error.message)
      })
    }
  })
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  await Promise.all(accepting)
  if (code === 0 || failure !== undefined || isClosing()) return failure
  return signal === null ? `a child ended with ${code}` : `a child was ended by ${signal}`
}
