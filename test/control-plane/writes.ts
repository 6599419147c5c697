import { setTimeout as sleep } from 'node:timers/promises'
import { ApiClient } from '../kit/cluster/api-client.ts'

/**
 * Creates ConfigMaps at a steady rate, one at a time, each under a name of its own, and keeps what
 * came of each.
 */
export class Writes {
  /** Names whose creation was acknowledged. */
  readonly acknowledged = new Set<string>()
  /** What was answered instead, by name. */
  readonly refused = new Map<string, string>()
  readonly #client: ApiClient
  readonly #path: string
  readonly #done: Promise<void>
  #stopped = false

  constructor(origin: string, path: string, perSecond: number) {
    this.#client = new ApiClient(origin)
    this.#path = path
    this.#done = this.#run(1000 / perSecond)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#done
    this.#client.close()
  }

  async #run(everyMs: number): Promise<void> {
    for (let number = 0; !this.#stopped; number += 1) {
      const next = sleep(everyMs)
      await this.#write(`write-${number}`)
      await next
    }
  }

  async #write(name: string): Promise<void> {
    try {
      const object = { metadata: { name }, data: { name } }
      const { status, body } = await this.#client.post(this.#path, object)
      if (status === 201) this.acknowledged.add(name)
      else this.refused.set(name, `${status} ${body.toString().slice(0, 200)}`)
    } catch (error) {
      this.refused.set(name, String(error))
    }
  }
}
