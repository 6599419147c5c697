import { listDecoder } from '../codec/list-decoder.ts'
import { watchEvents } from '../codec/watch-decoder.ts'
import type { WatchEvent } from '../codec/watch.ts'
import type { Encoding } from '../kube/media-type.ts'
import { namespacedName, type ApiObject } from '../kube/object.ts'
import { isNewer } from '../kube/resource-version.ts'
import { ResourceExpired, Reflector, watchQuery, type WatchOptions } from './reflector.ts'

export interface InformerOptions<Item> {
  readonly encoding: Encoding
  /** Opens a list or watch with these parameters. Throws `ResourceExpired` for a 410. */
  readonly open: (
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ) => Promise<AsyncIterable<Uint8Array>>
  /**
   * The parameters of a list that say which version it is of, by the last observed resource
   * version ('' for a consistent read), and how large its pages are.
   */
  readonly listQuery: (lastObserved: string | undefined) => Readonly<Record<string, string>>
  /** Makes the item that is stored of an object. `before` is the item stored until now. */
  readonly transform: (object: ApiObject, before: Item | undefined) => Item
  /** Called for each item that is added, updated or deleted, after `items` has changed. */
  readonly onChange?:
    ((key: string, now: Item | undefined, before: Item | undefined) => void) | undefined
  /** Called with each failure. The reflector retries until the informer is disposed of. */
  readonly onFailure?: ((cause: unknown) => void) | undefined
}

/**
 * A reflector of one collection of an API server, and an item for each of its
 * objects. Of an object it holds only what `transform` returns.
 */
export class Informer<Item> implements AsyncDisposable {
  /** By name, or by namespace and name with a slash between. */
  readonly items = new Map<string, Item>()
  readonly #options: InformerOptions<Item>
  readonly #stopped = new AbortController()
  readonly #running: Promise<void>
  readonly #listed = Promise.withResolvers<void>()
  #version: string | undefined
  /** How many lists and watches it has opened. */
  lists = 0
  watches = 0

  constructor(options: InformerOptions<Item>) {
    this.#options = options
    const reflector = new Reflector(
      {
        listerWatcher: {
          list: (version, signal) => this.#list(version === '', signal),
          watch: (watch, signal) => this.#watch(watch, signal),
          isRestored: (signal) => this.#isRestored(signal),
        },
        version: () => this.#version,
      },
      {
        onSynced: () => this.#listed.resolve(),
        onOpen: () => undefined,
        onEvents: (events) => this.#apply(events),
        onClosed: () => undefined,
        onFailed: (cause) => {
          if (!(cause instanceof ResourceExpired)) options.onFailure?.(cause)
        },
      },
    )
    this.#running = reflector.run(this.#stopped.signal)
  }

  /** Whether the collection has been listed once. */
  get synced(): boolean {
    return this.#version !== undefined
  }

  /** Resolves after the first list; never where the informer is disposed of before that. */
  get listed(): Promise<void> {
    return this.#listed.promise
  }

  async #list(isConsistent: boolean, signal: AbortSignal): Promise<void> {
    this.lists++
    const { encoding, open, listQuery } = this.#options
    const query = listQuery(isConsistent ? '' : this.#version)
    const seen = new Set<string>()
    let version = ''
    let next = ''
    do {
      const page = { ...query, ...(next !== '' && { continue: next }) }
      const decoder = listDecoder(encoding, 'object')
      for await (const chunk of await open(page, signal)) {
        const { batch } = decoder.push(chunk)
        for (const object of batch?.objects ?? []) seen.add(this.#set(object))
      }
      const { meta } = decoder.end()
      version = meta.resourceVersion
      next = meta.continue
    } while (next !== '')
    for (const key of this.items.keys()) if (!seen.has(key)) this.#delete(key)
    this.#version = version
  }

  /** By a consistent read of one object, which no lagging server answers from its watch cache. */
  async #isRestored(signal: AbortSignal): Promise<boolean> {
    const { encoding, open } = this.#options
    const decoder = listDecoder(encoding, 'object')
    for await (const chunk of await open({ limit: '1' }, signal)) decoder.push(chunk)
    return isNewer(this.#version, decoder.end().meta.resourceVersion)
  }

  async #watch(
    options: WatchOptions,
    signal: AbortSignal,
  ): Promise<AsyncIterable<readonly WatchEvent[]>> {
    this.watches++
    return watchEvents(
      await this.#options.open(watchQuery(options), signal),
      this.#options.encoding,
    )
  }

  #apply(events: readonly WatchEvent[]): void {
    for (const event of events) {
      if (event.type === 'ERROR' || event.type === 'UNREAD') continue
      if (event.type === 'BOOKMARK') {
        this.#version = event.resourceVersion
        continue
      }
      if (event.type === 'DELETED') this.#delete(namespacedName(event.object))
      else this.#set(event.object)
      this.#version = event.object.resourceVersion
    }
  }

  #set(object: ApiObject): string {
    const key = namespacedName(object)
    const before = this.items.get(key)
    const now = this.#options.transform(object, before)
    this.items.set(key, now)
    this.#options.onChange?.(key, now, before)
    return key
  }

  #delete(key: string): void {
    const before = this.items.get(key)
    if (before === undefined) return
    this.items.delete(key)
    this.#options.onChange?.(key, undefined, before)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort()
    await this.#running
  }
}
