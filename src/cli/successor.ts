import { spawn, type ChildProcess, type SendHandle } from 'node:child_process'
import { after } from '../base/clock.ts'
import type { ListenerName, ListenerSocket, SocketsByListener } from '../config/passed-sockets.ts'
import { successorEnvironment } from '../config/process.ts'
import type { SocketHandle } from '../http/server/listening.ts'
import { withTokenInEnvironment } from './hidden-token.ts'

/** A listening socket of this process. */
export interface OpenSocket extends ListenerSocket {
  readonly name: ListenerName
  readonly handle: SocketHandle | undefined
}

/**
 * The messages of a hot restart, over the channel that Node opens between parent and child:
 * `ready`; `hold`, with a socket that comes back with `held`; `yours`; `serving`. The values are a
 * protocol between versions and must not change.
 */
export type HotRestartMessage = 'ready' | 'hold' | 'held' | 'yours' | 'serving'

/**
 * The time limit of the successor for each step: it loads modules and probes API servers, then
 * opens the store.
 */
const patienceMs = 60_000

/** The time limit for returning a socket; an older version does not answer. */
const givingBackMs = 5_000

/**
 * The process that replaces this one in a hot restart. It shares the listening sockets from its
 * start, so that no other program can bind their addresses.
 */
export interface Successor {
  readonly pid: number | undefined
  /**
   * Resolves to `undefined` when it could serve once this process stops; else to the reason why
   * not.
   */
  ready(): Promise<string | undefined>
  /**
   * Lets it serve. Resolves to `true` once it does, and to `false` if it does not and has ended.
   */
  takeOver(): Promise<boolean>
  /** If it does not serve: the listening sockets, which stayed bound in the meantime. */
  readonly returnedSockets: SocketsByListener
  kill(): void
}

/** Starts the program that is at this process's path now, with the same arguments. */
export function startSuccessor(sockets: readonly OpenSocket[]): Successor {
  const { argv, env } = withTokenInEnvironment({
    argv: process.argv.slice(1),
    env: successorEnvironment(sockets.map(({ name }) => name)),
  })
  const child = spawn(process.execPath, [...optionsOfNext(process.execArgv), ...argv], {
    env,
    // Passed sockets begin at descriptor 3.
    stdio: ['inherit', 'inherit', 'inherit', ...sockets.map(({ fd }) => fd), 'ipc'],
  })
  return new ChildSuccessor(child, sockets)
}

/**
 * This process's Node options, and no debugger: SIGUSR1 may arrive before the successor has a
 * handler.
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
   * Sends each socket to the successor and back, to get a second descriptor: this process closes
   * the first with its listeners, and the successor may die before it serves. Node cannot duplicate
   * a descriptor.
   */
  async #keep(): Promise<string | undefined> {
    for (const { name, at, handle } of this.#sockets) {
      if (!handle) continue
      const back = this.#hears('held', givingBackMs)
      // Node's types only allow its own classes, which would start to listen on receipt.
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

  /** The handle of the expected message, or why it was not received. */
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
