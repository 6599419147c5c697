import { once } from 'node:events'
import type { HandoverWord } from './successor.ts'

/** The process that this one takes over from. */
export interface Predecessor {
  /** Says that this process is ready; resolves when the other has let go of everything, or is gone. */
  released(): Promise<void>
  /** Says that this process serves. */
  serving(): void
}

/** The parent of this process, which started it to be its successor. */
export const parentAsPredecessor = (): Predecessor => ({
  async released() {
    if (!process.connected) return
    const gone = once(process, 'disconnect')
    const told = new Promise<void>((resolve) =>
      process.on('message', (word) => {
        if (word === ('yours' satisfies HandoverWord)) resolve()
      }),
    )
    say('ready')
    await Promise.race([told, gone])
  },
  serving() {
    say('serving')
    if (process.connected) process.disconnect?.()
  },
})

/** Where the other is gone there is nobody to tell. */
function say(word: HandoverWord): void {
  if (process.connected) process.send?.(word, () => undefined)
}
