import type { SendHandle } from 'node:child_process'
import { once } from 'node:events'
import type { SocketHandle } from '../http/server/listening.ts'
import type { HotRestartMessage } from './successor.ts'

/** The process that this one replaces in a hot restart. */
export interface Predecessor {
  /**
   * Reports that this process is ready; resolves when the other has released everything, or is
   * gone.
   */
  released(): Promise<void>
  /** Reports that this process serves. */
  serving(): void
}

/** The parent of this process, as its predecessor. */
export const parentAsPredecessor = (): Predecessor => ({
  async released() {
    if (!process.connected) return
    const gone = once(process, 'disconnect')
    const handedOver = new Promise<void>((resolve) =>
      process.on('message', (word, handle) => {
        if (word === ('hold' satisfies HotRestartMessage)) giveBack(handle)
        if (word === ('yours' satisfies HotRestartMessage)) resolve()
      }),
    )
    say('ready')
    await Promise.race([handedOver, gone])
  },
  serving() {
    say('serving')
    if (process.connected) process.disconnect?.()
  },
})

/** Returns the handle: the predecessor gets another descriptor of the same socket. */
function giveBack(handle: SendHandle): void {
  const close = (): void => (handle as unknown as SocketHandle | undefined)?.close()
  if (process.connected) process.send?.('held' satisfies HotRestartMessage, handle, {}, close)
  else close()
}

/** Without effect if the predecessor is gone. */
function say(word: HotRestartMessage): void {
  if (process.connected) process.send?.(word, () => undefined)
}
