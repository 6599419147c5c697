import type { JsonObject } from '../../../src/api/kube/json.ts'
import { at, nameOf, objectOf, type Client, type Watching } from '../client.ts'
import { Stuck } from './requests.ts'
import type { Release } from './release.ts'

/** What an informer holds once it has synced, by namespace and name. */
export type Synced = ReadonlyMap<string, JsonObject>

const lasting = { allowWatchBookmarks: 'true', timeoutSeconds: '400' }

/**
 * Syncs as client-go's reflector does, once, and then holds its watch open. Throws `Stuck` where
 * the kubelet would have to wait.
 */
export class Informer implements Disposable {
  readonly #client: Client
  readonly #path: string
  readonly #query: Record<string, string>
  #watch: Watching | undefined

  constructor(client: Client, path: string, query: Record<string, string> = {}) {
    this.#client = client
    this.#path = path
    this.#query = query
  }

  async sync({ watchList }: Release): Promise<Synced> {
    return (watchList ? await this.#watchList() : undefined) ?? this.#list()
  }

  /** `undefined` where the server refuses it and a list is to be tried. */
  async #watchList(): Promise<Synced | undefined> {
    const watch = await this.#open({
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
    })
    if (watch.status !== 200) {
      watch.answer.destroy()
      return undefined
    }
    this.#watch = watch
    const objects = new Map<string, JsonObject>()
    for (;;) {
      const event = await watch.next()
      if (event === undefined) throw new Stuck(`WATCH ${this.#path} ended too soon`, 200)
      if (event.type !== 'BOOKMARK') objects.set(nameOf(event.object), event.object)
      else if (at(event.object, 'metadata', 'annotations', 'k8s.io/initial-events-end')) break
    }
    return objects
  }

  async #list(): Promise<Synced> {
    const query = new URLSearchParams({ ...this.#query, limit: '500', resourceVersion: '0' })
    const answer = await this.#client.get(`${this.#path}?${query}`)
    if (answer.status !== 200) throw new Stuck(`LIST ${this.#path}?${query}`, answer.status)
    const list = objectOf(answer)
    const resourceVersion = at(list, 'metadata', 'resourceVersion') as string
    if (['', '0', undefined].includes(resourceVersion)) {
      throw new Stuck(`LIST ${this.#path} without a version`, 200)
    }
    this.#watch = await this.#open({ resourceVersion })
    if (this.#watch.status !== 200) throw new Stuck(`WATCH ${this.#path}`, this.#watch.status)
    const items = (list['items'] ?? []) as readonly JsonObject[]
    return new Map(items.map((item) => [nameOf(item), item]))
  }

  #open(query: Record<string, string>): Promise<Watching> {
    const selectors = new URLSearchParams(this.#query)
    const path = selectors.size === 0 ? this.#path : `${this.#path}?${selectors}`
    return this.#client.watch(path, { ...lasting, ...query })
  }

  [Symbol.dispose](): void {
    this.#watch?.answer.destroy()
  }
}
