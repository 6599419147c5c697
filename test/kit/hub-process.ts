import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Client, type ClientOptions } from './client.ts'
import { plainNode } from './cluster/plain-node.ts'
import { Condition } from './condition.ts'
import { freePort } from './free-port.ts'
import { hubFlags, type TestHubOptions } from './hub-config.ts'
import { nodehubProgram } from './hub-programs.ts'
import type { Teardown } from './wire/wire.ts'
import { until } from './until.ts'

/** A line of a hub's log. */
export interface Line {
  readonly level: string
  readonly msg: string
}

/** `nodehub start` as an operator runs it, on ports of its own. */
export class HubProcess {
  readonly proxyPort: number
  readonly securePort: number
  readonly opsPort: number
  readonly rootDir: string
  /** What it has logged so far. */
  readonly lines: Line[] = []
  readonly #child: ChildProcess
  readonly #condition = new Condition()
  #ended = false

  constructor(
    rootDir: string,
    [proxyPort, securePort, opsPort]: readonly [number, number, number],
    flags: readonly string[],
    program = nodehubProgram,
  ) {
    this.rootDir = rootDir
    this.proxyPort = proxyPort
    this.securePort = securePort
    this.opsPort = opsPort
    const ports = [
      `--proxy-port=${proxyPort}`,
      `--serve-port=${opsPort}`,
      `--proxy-secure-port=${securePort}`,
    ]
    const probes = ['--heartbeat-interval-seconds=1', '--heartbeat-failed-retry=1']
    const [command, args] = plainNode(program, 'start', ...ports, ...probes, ...flags)
    this.#child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#child.once('exit', () => {
      this.#ended = true
      this.#condition.changed()
    })
    const { stderr } = this.#child
    if (stderr) createInterface({ input: stderr }).on('line', (text) => this.#hear(text))
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  #hear(text: string): void {
    const line = (text.startsWith('{') ? JSON.parse(text) : { level: '', msg: text }) as Line
    this.lines.push(line)
    this.#condition.changed()
  }

  /** The first line from the one numbered `from` on that says so; lines count from 0. */
  says(what: RegExp, from = 0): Promise<Line> {
    return this.#condition.seen(() => {
      const line = this.lines.slice(from).find(({ msg }) => what.test(msg))
      if (line === undefined && this.#ended && from === 0) {
        throw new Error(`the hub ended:\n${this.lines.map(({ msg }) => msg).join('\n')}`)
      }
      return line
    })
  }

  /** Starts nothing that is waited for: for a hub that is not expected to serve. */
  static async refused(t: Teardown, options: TestHubOptions, rootDir: string): Promise<HubProcess> {
    const ports = [await freePort(), await freePort(), await freePort()] as const
    const hub = new HubProcess(rootDir, ports, hubFlags(rootDir, options))
    t.teardown(() => hub.kill())
    return hub
  }

  /** Reads no more of what it logs, as a log's reader does that hangs. */
  stopReading(): void {
    this.#child.stderr?.removeAllListeners('data').pause()
  }

  /** Resolves when the process has ended. */
  async ended(): Promise<number | null> {
    await this.#condition.until(() => this.#ended)
    return this.#child.exitCode
  }

  as(component: string, options: Partial<ClientOptions> = {}): Client {
    return new Client({ url: `http://127.0.0.1:${this.proxyPort}`, component, ...options })
  }

  get ops(): Client {
    return new Client({ url: `http://127.0.0.1:${this.opsPort}`, component: 'prober' })
  }

  kill(): void {
    signal(this.pid, 'SIGKILL')
  }
}

/** Tells a process something, if it is still there. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ESRCH') throw cause
  }
}

/** A hub in a process of its own that serves, gone with the test. */
export async function startHubProcess(
  t: Teardown,
  options: TestHubOptions,
  rootDir = mkdtempSync(join(tmpdir(), 'nodehub-process-')),
  program = nodehubProgram,
): Promise<HubProcess> {
  t.teardown(() => rmSync(rootDir, { recursive: true, force: true }))
  const ports = [await freePort(), await freePort(), await freePort()] as const
  const hub = new HubProcess(rootDir, ports, hubFlags(rootDir, options), program)
  t.teardown(() => hub.kill())
  await hub.says(/^online/)
  await until('the hub to be ready', async () => (await hub.ops.get('/readyz')).status === 200)
  return hub
}
