import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { after } from '../../base/clock.ts'
import type { BoundSocket, SocketHandle } from './listening.ts'

/**
 * How many connections each listening socket accepts in one turn of the event loop. libuv accepts
 * one per turn for each descriptor that it watches. A turn in which hundreds of clients have sent
 * something takes some 10 ms, so with one descriptor a hundred connections per second fill the
 * socket's queue, where the kubelet's wait as well; the kernel drops connections over a full queue,
 * and their clients try again after 1, 3 and 7 seconds. More descriptors than this accept a flood
 * faster than the hub can refuse it: in the mixed attack (`npm run attack`) the p99 of the node's
 * requests is 200 ms with three, 405 ms with eight.
 */
export const acceptsPerTurn = 3

/** The timeout of the child, which loads one small module and sends descriptors. */
const patienceMs = 10_000

/**
 * Accepts on further descriptors of `sockets`. Node duplicates a descriptor only when it passes it
 * to another process: a child sends back what it gets, and exits. Resolves to the reason of a
 * failure, after which each socket accepts on the descriptors that it has. Stops without a reason
 * when one of the sockets closes.
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
    // Neither this process's Node options nor its secrets.
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  using _patience = after(patienceMs, () => child.kill('SIGKILL'))
  const passed = sockets.filter(({ handle }) => handle !== undefined)
  const accepting: Promise<void>[] = []
  let failure: string | undefined
  /**
   * Kills the child. If this process closed the channel while sockets are in transit, Node would
   * throw where nothing can catch it.
   */
  const breakOff = (why?: string): void => {
    failure ??= why
    child.kill('SIGKILL')
  }
  child.on('message', (index: number, handle) => {
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
