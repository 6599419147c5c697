import { spawn, type ChildProcess } from 'node:child_process'
import { after } from '../base/clock.ts'
import type { ListenerName } from '../config/passed-sockets.ts'
import { environmentOfNext } from '../config/process.ts'

/** A listening socket of this process. */
export interface OpenSocket {
  readonly name: ListenerName
  readonly fd: number
}

/** What two processes tell each other, over the channel that Node opens between a parent and its child. */
export type HandoverWord = 'ready' | 'yours' | 'serving'

/** How long the next process may take for each step: it reads modules and probes API servers, then opens the store. */
const patienceMs = 60_000

/** The process that is to take over. It shares the listening sockets from its first moment, so that nobody else can have their places. */
export interface Successor {
  readonly pid: number | undefined
  /** Resolves when all is well with it but that this one is in its way; else to what is wrong. */
  ready(): Promise<string | undefined>
  /** Tells it that nothing is in its way any more. True once it serves; false where it does not, and is gone. */
  takeOver(): Promise<boolean>
  kill(): void
}

/** Starts what stands at this process's own path now, with the arguments this one was given. */
export function startSuccessor(sockets: readonly OpenSocket[]): Successor {
  const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    env: environmentOfNext(sockets.map(({ name }) => name)),
    // Passed sockets are expected from the third descriptor on.
    stdio: ['inherit', 'inherit', 'inherit', ...sockets.map(({ fd }) => fd), 'ipc'],
  })
  return new ChildSuccessor(child)
}

class ChildSuccessor implements Successor {
  readonly #child: ChildProcess
  readonly #over: Promise<string>

  constructor(child: ChildProcess) {
    this.#child = child
    this.#over = new Promise((resolve) => {
      child.once('error', (cause) => resolve(cause.message))
      child.once('exit', (code, signal) =>
        resolve(signal === null ? `it ended with ${code}` : `it was ended by ${signal}`),
      )
    })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  ready(): Promise<string | undefined> {
    return this.#says('ready')
  }

  async takeOver(): Promise<boolean> {
    const serving = this.#says('serving')
    this.#child.send('yours' satisfies HandoverWord, () => undefined)
    if ((await serving) === undefined) return true
    this.kill()
    await this.#over
    return false
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  async #says(expected: HandoverWord): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    const onMessage = (word: unknown): void => {
      if (word === expected) resolve(undefined)
    }
    this.#child.on('message', onMessage)
    using _ = after(patienceMs, () => resolve(`it was not ${expected} within ${patienceMs} ms`))
    try {
      return await Promise.race([promise, this.#over])
    } finally {
      this.#child.off('message', onMessage)
    }
  }
}
