import { setTimeout as sleep } from 'node:timers/promises'
import { textAt } from '../../src/api/kube/json-at.ts'
import { Client } from '../kit/client.ts'

/**
 * Lists and watches a collection as a reflector does: it resumes each watch from its last version,
 * and lists again only if that has expired.
 */
export class TestReflector {
  /** The names of the held objects. */
  readonly names = new Set<string>()
  /** Violations of order: an event older than its predecessor. */
  readonly anomalies: string[] = []
  readonly #path: string
  readonly #client: Client
  readonly #stop = new AbortController()
  readonly #done: Promise<void>
  #version = 0n

  constructor(url: string, path: string) {
    this.#path = path
    this.#client = new Client({ url, component: 'kubelet' })
    this.#done = this.#run()
  }

  stop(): Promise<void> {
    this.#stop.abort()
    return this.#done
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
    const { resourceVersion, names, answer } = await this.#client.list(
      `${this.#path}?resourceVersion=0`,
    )
    if (answer.status !== 200) throw new Error(`status ${answer.status}`)
    this.#advance(resourceVersion, 'a list')
    this.names.clear()
    for (const name of names) this.names.add(name.replace(/.*\//, ''))
  }

  /** `false` if the version has expired. */
  async #watch(signal: AbortSignal): Promise<boolean> {
    const watch = await this.#client.watch(this.#path, {
      allowWatchBookmarks: 'true',
      timeoutSeconds: '300',
      resourceVersion: String(this.#version),
    })
    const hangUp = (): void => watch.hangUp()
    signal.addEventListener('abort', hangUp, { once: true })
    try {
      if (signal.aborted || watch.status !== 200) throw new Error(`status ${watch.status}`)
      for await (const { type, object } of watch) {
        if (type === 'ERROR') return false
        const name = textAt(object, 'metadata', 'name')
        this.#advance(textAt(object, 'metadata', 'resourceVersion'), `${type} ${name}`)
        if (type === 'ADDED') this.names.add(name)
        if (type === 'DELETED') this.names.delete(name)
      }
      return true
    } finally {
      signal.removeEventListener('abort', hangUp)
      hangUp()
    }
  }

  #advance(version: string, by: string): void {
    const next = BigInt(version)
    if (next < this.#version) this.anomalies.push(`${by} at ${version} after ${this.#version}`)
    else this.#version = next
  }
}
