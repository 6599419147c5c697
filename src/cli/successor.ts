import { spawn, type ChildProcess, type SendHandle } from 'node:child_process'
import { after } from '../base/clock.ts'
import type { ListenerName, ListenerSocket, SocketsByListener } from '../config/passed-sockets.ts'
import { successorEnvironment } from '../config/process.ts'
import type { SocketHandle } from '../http/server/listening.ts'

/** A listening socket of this process. */
export interface OpenSocket extends ListenerSocket {
  readonly name: ListenerName
  readonly handle: SocketHandle | undefined
}

/**
 * What two processes tell each other, over the channel that Node opens between a parent and its
 * child: `ready`; `hold`, with a socket, which comes back with `held`; `yours`; `serving`.
 */
export type HotRestartMessage = 'ready' | 'hold' | 'held' | 'yours' | 'serving'

/**
 * How long the next process may take for each step: it reads modules and probes API servers, then
 * opens the store.
 */
const patienceMs = 60_000

/**
 * How long it may take to give sockets back, which costs it nothing; an older version does not know
 * of it.
 */
const givingBackMs = 5_000

/**
 * The process that is to take over. It shares the listening sockets from its first moment, so that
 * nobody else can have their places.
 */
export interface Successor {
  readonly pid: number | undefined
  /** Resolves when all is well with it but that this one is in its way; else to what is wrong. */
  ready(): Promise<string | undefined>
  /**
   * Tells it that nothing is in its way any more. True once it serves; false where it does not, and
   * is gone.
   */
  takeOver(): Promise<boolean>
  /**
   * Where it does not serve: the sockets it was to serve, which were nobody else's in the meantime.
   */
  readonly returnedSockets: SocketsByListener
  kill(): void
}

/** Starts what stands at this process's own path now, with the arguments this one was given. */
export function startSuccessor(sockets: readonly OpenSocket[]): Successor {
  const child = spawn(
    process.execPath,
    [...optionsOfNext(process.execArgv), ...process.argv.slice(1)],
    {
      env: successorEnvironment(sockets.map(({ name }) => name)),
      // Passed sockets are expected from the third descriptor on.
      stdio: ['inherit', 'inherit', 'inherit', ...sockets.map(({ fd }) => fd), 'ipc'],
    },
  )
  return new ChildSuccessor(child, sockets)
}

/**
 * This process's own options of Node, and that it opens no debugger: a signal may come before the
 * next process can say what it does then.
 */
const optionsOfNext = (own: readonly string[]): string[] => [
  noDebugger,
  ...own.filter((option) => option !== noDebugger),
]

const noDebugger = '--disable-sigusr1'

class ChildSuccessor implements Successor {
  readonly #child: ChildProcess
  readonly #sockets: readonly OpenSocket[]
  readonly #over: Promise<string>
  readonly #kept: (Omit<OpenSocket, 'handle'> & { readonly handle: SocketHandle })[] = []

  constructor(child: ChildProcess, sockets: readonly OpenSocket[]) {
    this.#child = child
    this.#sockets = sockets
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

  async ready(): Promise<string | undefined> {
    const failure = await this.#says('ready')
    return failure ?? this.#keep()
  }

  get returnedSockets(): SocketsByListener {
    return Object.groupBy(this.#kept, ({ name }) => name)
  }

  /**
   * Has each socket sent to and fro, for a second descriptor of it: this process closes the first
   * with its listeners, and the next one may die before it serves. Node makes no second descriptor
   * by itself.
   */
  async #keep(): Promise<string | undefined> {
    for (const { name, at, handle } of this.#sockets) {
      if (!handle) continue
      const back = this.#hears('held', givingBackMs)
      // Node's types know of its own classes only, and those would listen as they arrive.
      this.#child.send('hold' satisfies HotRestartMessage, handle as unknown as SendHandle)
      const answer = await back
      if (answer.failure !== undefined) return this.#child.connected ? undefined : answer.failure
      if (answer.handle) {
        this.#kept.push({ name, at, fd: answer.handle.fd, handle: answer.handle })
      }
    }
    return undefined
  }

  async takeOver(): Promise<boolean> {
    const serving = this.#says('serving')
    this.#child.send('yours' satisfies HotRestartMessage, () => undefined)
    if ((await serving) === undefined) {
      for (const { handle } of this.#kept.splice(0)) handle.close()
      return true
    }
    this.kill()
    await this.#over
    return false
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  async #says(expected: HotRestartMessage): Promise<string | undefined> {
    return (await this.#hears(expected, patienceMs)).failure
  }

  /** What came with a word, or why it did not come. */
  async #hears(expected: HotRestartMessage, withinMs: number): Promise<Heard> {
    const { promise, resolve } = Promise.withResolvers<Heard>()
    const onMessage = (word: unknown, handle: unknown): void => {
      if (word === expected) resolve({ handle: handle as SocketHandle | undefined })
    }
    this.#child.on('message', onMessage)
    const late = `it was not ${expected} within ${withinMs} ms`
    using _ = after(withinMs, () => resolve({ failure: late }))
    try {
      return await Promise.race([promise, this.#over.then((failure) => ({ failure }))])
    } finally {
      this.#child.off('message', onMessage)
    }
  }
}

interface Heard {
  readonly failure?: string
  readonly handle?: SocketHandle | undefined
}
