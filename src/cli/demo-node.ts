import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'undici'
import type { HubConfig } from '../config/config.ts'
import { startHub, type Hub, type HubOptions } from '../hub/hub.ts'
import { simulateNode, type SimulatedNode } from './demo-cluster.ts'

/** The node of the demonstration: a hub, and programs that use it. */
export class DemoNode implements AsyncDisposable {
  readonly #config: HubConfig
  readonly #options: HubOptions
  #hub: Hub
  #programs: SimulatedNode

  /** `hub` runs with this configuration and these options. */
  constructor(config: HubConfig, options: HubOptions, hub: Hub) {
    // After a reboot it listens where it listened before.
    this.#config = {
      ...config,
      ops: { ...config.ops, port: hub.opsPort },
      proxy: { ...config.proxy, port: hub.proxyPort, securePort: hub.proxySecurePort },
    }
    this.#options = options
    this.#hub = hub
    this.#programs = simulateNode(this.server)
  }

  get hub(): Hub {
    return this.#hub
  }

  /** The address of the plain proxy. */
  get server(): string {
    return `http://127.0.0.1:${this.#config.proxy.port}`
  }

  /** See `SimulatedNode`. */
  get pods(): number | undefined {
    return this.#programs.pods
  }

  /** Stops all programs and starts them again: only the hub's files are left. */
  async reboot(): Promise<void> {
    await this[Symbol.asyncDispose]()
    this.#hub = await startHub(this.#config, this.#options)
    this.#programs = simulateNode(this.server)
  }

  /** A report of the hub, as `nodehub inspect` reads it. */
  async report(name: string): Promise<unknown> {
    const token = readFileSync(join(this.#config.rootDir, 'inspect.token'), 'utf8')
    const { body } = await request(`http://127.0.0.1:${this.#config.ops.port}/inspect/${name}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    return body.json()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#programs[Symbol.asyncDispose]()
    await this.#hub[Symbol.asyncDispose]()
  }
}
