import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Client, type ClientOptions } from './client.ts'
import { Condition } from './condition.ts'
import { hubProgram } from './hub-programs.ts'

interface ChildMessage {
  readonly online?: boolean
  readonly proxyPort?: number
  readonly opsPort?: number
}

const resolved = new URL('../tiers/resolved.ts', import.meta.url).href

/** A hub in a process of its own, with state that survives it. */
export class ChildHub {
  readonly rootDir: string
  readonly #flags: readonly string[]
  readonly #env: Readonly<Record<string, string>>
  #process: ChildProcess | undefined
  #port = 0
  #opsPort = 0
  #online: boolean | undefined
  readonly #condition = new Condition()
  /** Its standard error so far. */
  log = ''

  /** `env` extends the environment of this process. */
  constructor(
    rootDir: string,
    flags: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ) {
    this.rootDir = rootDir
    this.#flags = flags
    this.#env = env
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Resolves when it serves. Rejects if it exits before. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, [`--import=${resolved}`, hubProgram, ...this.#flags], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...this.#env },
    })
    this.#process = child
    this.#online = undefined
    this.#port = 0
    child.stderr.on('data', (text: Buffer) => (this.log += text.toString()))
    createInterface({ input: child.stdout }).on('line', (line) => this.#hear(line))
    let over = false
    child.once('exit', () => {
      over = true
      this.#condition.changed()
    })
    await this.#condition.until(() => over || this.#port > 0)
    if (over) throw new Error(`the hub ended:\n${this.log}`)
  }

  #hear(line: string): void {
    const { online, proxyPort, opsPort } = JSON.parse(line) as ChildMessage
    if (opsPort !== undefined) this.#opsPort = opsPort
    if (online !== undefined) this.#online = online
    if (proxyPort !== undefined) this.#port = proxyPort
    this.#condition.changed()
  }

  offline(): Promise<void> {
    return this.#condition.until(() => this.#online === false)
  }

  online(): Promise<void> {
    return this.#condition.until(() => this.#online === true)
  }

  /** Resolves when it has exited or was killed. */
  async gone(): Promise<void> {
    const child = this.#process
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }

  /** kill -9; resolves when it is gone. */
  async crash(): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  as(component: string, options: Partial<ClientOptions> = {}): Client {
    return new Client({ url: this.url, component, ...options })
  }

  /** The port of health, readiness and metrics. */
  get ops(): Client {
    return new Client({ url: `http://127.0.0.1:${this.#opsPort}`, component: 'prober' })
  }
}
