import { setTimeout as sleep } from 'node:timers/promises'
import { ApiClient } from './cluster/api-client.ts'
import { followLines } from './lines.ts'

/** The part of a watch event that is used. */
interface Event {
  readonly type: string
  readonly object: {
    readonly metadata: { readonly name?: string; readonly resourceVersion: string }
  }
}

/**
 * Lists and watches a collection as a reflector does: it resumes each watch from its last version,
 * and lists again only if that has expired.
 */
export class TestReflector {
  /** The names of the held objects. */
  readonly names = new Set<string>()
  /** Violations of order: an event older than its predecessor. */
  readonly anomalies: string[] = []
  lists = 0
  watches = 0
  readonly #origin: string
  readonly #path: string
  readonly #client: ApiClient
  readonly #stop = new AbortController()
  readonly #done: Promise<void>
  #version = 0n

  constructor(origin: string, path: string) {
    this.#origin = origin
    this.#path = path
    this.#client = new ApiClient(origin)
    this.#done = this.#run()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#done
    this.#client.close()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    let listed = false
    while (!signal.aborted) {
      try {
        if (!listed) await this.#list()
        listed = true
        listed = await this.#watch(signal)
      } catch {
        // No answer: client-go backs off from less than a second on.
        await sleep(200, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  async #list(): Promise<void> {
    const { status, json } = await this.#client.get(`${this.#path}?resourceVersion=0`)
    if (status !== 200) throw new Error(`status ${status}`)
    const { metadata, items = [] } = json()
    this.lists += 1
    this.#advance(metadata.resourceVersion ?? '0', 'a list')
    this.names.clear()
    for (const item of items) this.names.add(item.metadata.name)
  }

  /** `false` if the version has expired. */
  async #watch(signal: AbortSignal): Promise<boolean> {
    const query = `watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=${this.#version}`
    this.watches += 1
    for await (const line of followLines(`${this.#origin}${this.#path}?${query}`, signal)) {
      const { type, object } = JSON.parse(line) as Event
      if (type === 'ERROR') return false
      this.#advance(object.metadata.resourceVersion, `${type} ${object.metadata.name ?? ''}`)
      if (type === 'ADDED' && object.metadata.name) this.names.add(object.metadata.name)
      if (type === 'DELETED' && object.metadata.name) this.names.delete(object.metadata.name)
    }
    return true
  }

  #advance(version: string, by: string): void {
    const next = BigInt(version)
    if (next < this.#version) this.anomalies.push(`${by} at ${version} after ${this.#version}`)
    else this.#version = next
  }
}
