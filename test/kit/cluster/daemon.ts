import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { Hopeless, until } from '../until.ts'
import type { Workspace } from './workspace.ts'

export interface DaemonOptions {
  readonly command: string
  /** They name something in the workspace: that is how its reaper knows the process. */
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Whether it can be used yet; asked until it says so. */
  readonly ready: () => Promise<boolean>
  readonly seconds?: number
}

/**
 * A process of the machine the tests run against: started, killed, held still, started again under
 * the same arguments.
 */
export class Daemon {
  readonly name: string
  readonly logFile: string
  readonly #options: DaemonOptions
  #child: ChildProcess | undefined

  constructor(workspace: Workspace, name: string, options: DaemonOptions) {
    this.name = name
    this.logFile = workspace.file(`${name}.log`)
    this.#options = options
  }

  /** Starts it and resolves when it is ready; else throws with the end of its log. */
  async start(): Promise<this> {
    const { command, args, env, ready, seconds = 60 } = this.#options
    const log = openSync(this.logFile, 'a')
    const child = spawn(command, args, {
      detached: true,
      stdio: ['ignore', log, log],
      env: { ...process.env, ...env },
    })
    closeSync(log)
    this.#child = child
    await once(child, 'spawn')
    try {
      await until(
        `${this.name} to be ready`,
        async () => {
          if (child.exitCode !== null || child.signalCode !== null)
            throw new Hopeless(`${this.name} ended: ${child.exitCode ?? child.signalCode}`)
          return ready()
        },
        { seconds },
      )
    } catch (error) {
      throw new Error(`${this.name} did not start\n${this.log().slice(-4000)}`, { cause: error })
    }
    return this
  }

  get running(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null
  }

  get id(): number {
    const id = this.#child?.pid
    if (id === undefined) throw new Error(`${this.name} was never started`)
    return id
  }

  /** What it has written so far, over all its lives. */
  log(): string {
    return readFileSync(this.logFile, 'utf8')
  }

  /** SIGKILL, frozen or not; resolves when it is gone. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  /** SIGTERM; resolves with the exit status when it is gone. */
  async stop(): Promise<number | null> {
    await this.#end('SIGTERM')
    return this.#child?.exitCode ?? null
  }

  freeze(): void {
    process.kill(-this.id, 'SIGSTOP')
  }

  thaw(): void {
    process.kill(-this.id, 'SIGCONT')
  }

  /** Killed if it still runs, then started; resolves when it is ready. */
  async restart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (!this.running || !this.#child) return
    const gone = once(this.#child, 'exit')
    process.kill(-this.id, signal)
    await gone
  }
}
