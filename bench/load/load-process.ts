import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { JobMessage, JobName, JobOf, ResultMessage, ResultOf } from './jobs.ts'

/**
 * A process of its own for the load, so that neither measuring nor a proxy shares a loop with it.
 * One job at a time.
 */
export class LoadProcess implements AsyncDisposable {
  readonly #child: ChildProcess

  constructor() {
    this.#child = fork(new URL('./main.ts', import.meta.url), {
      serialization: 'advanced',
      // Not whatever this process was started with: a test runner's loader is no part of the load.
      execArgv: [],
      env: {},
    })
  }

  /** Rejects with what failed there, or if the process has ended. */
  async run<Name extends JobName>(name: Name, job: JobOf<Name>): Promise<ResultOf<Name>> {
    const message: JobMessage = { name, job }
    const ended = new AbortController()
    const exit = once(this.#child, 'exit', { signal: ended.signal })
    const told = once(this.#child, 'message', { signal: ended.signal })
    this.#child.send(message)
    try {
      const [answer] = (await Promise.race([
        told,
        exit.then(() => [{ failure: `the load process ended while at ${name}` }]),
      ])) as [ResultMessage]
      if ('failure' in answer) throw new Error(answer.failure)
      return answer.result as ResultOf<Name>
    } finally {
      const quiet = (): undefined => undefined
      exit.catch(quiet)
      told.catch(quiet)
      ended.abort()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, 'exit')
    this.#child.disconnect()
    await gone
  }
}
