import { listDecoder } from '../codec/list-decoder.ts'
import { watchEvents } from '../codec/watch-decoder.ts'
import type { WatchEvent } from '../codec/watch.ts'
import type { Encoding } from '../kube/media-type.ts'
import { namespacedName, type ApiObject } from '../kube/object.ts'
import {
  Reflector,
  ResourceExpired,
  watchQuery,
  type ListerWatcher,
  type ReflectorParts,
} from './reflector.ts'

/** How an informer reads its collection. */
export interface InformerReads {
  /**
   * Calls `take` with all objects, and resolves to the version of the list. `lastObserved`: the
   * version of the informer.
   */
  readonly list: (
    lastObserved: string | undefined,
    signal: AbortSignal,
    take: (objects: readonly ApiObject[]) => void,
  ) => Promise<string>
  readonly watch: ListerWatcher['watch']
}

export interface InformerOptions<Item> extends Pick<
  ReflectorParts,
  'onRecovery' | 'refusedBackoff'
> {
  readonly reads: InformerReads
  /**
   * Makes the item that is stored of an object; `undefined`: none. `before` is the item stored
   * until now: where it is returned, nothing has changed.
   */
  readonly transform: (object: ApiObject, before: Item | undefined) => Item | undefined
  /** Called for each item that is added, updated or deleted, after `items` has changed. */
  readonly onChange?:
    ((key: string, now: Item | undefined, before: Item | undefined) => void) | undefined
  /** Called when `items` is complete, after a list or when a watch is open. */
  readonly onSynced?: (() => void) | undefined
  /** Called after the changes that arrived together. */
  readonly onEvents?: (() => void) | undefined
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
    const { reads, onRecovery, refusedBackoff } = options
    const reflector = new Reflector(
      {
        listerWatcher: {
          list: (signal) => this.#list(signal),
          watch: (watch, signal) => {
            this.watches++
            return reads.watch(watch, signal)
          },
        },
        version: () => this.#version,
        ...(onRecovery && { onRecovery }),
        ...(refusedBackoff && { refusedBackoff }),
      },
      {
        onOpen: () => options.onSynced?.(),
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

  async #list(signal: AbortSignal): Promise<void> {
    this.lists++
    const seen = new Set<string>()
    this.#version = await this.#options.reads.list(this.#version, signal, (objects) => {
      for (const object of objects) seen.add(this.#set(object))
    })
    for (const key of this.items.keys()) if (!seen.has(key)) this.#delete(key)
    this.#options.onSynced?.()
    this.#listed.resolve()
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
    this.#options.onEvents?.()
  }

  #set(object: ApiObject): string {
    const key = namespacedName(object)
    const before = this.items.get(key)
    const now = this.#options.transform(object, before)
    if (now === undefined) this.#delete(key)
    else if (now !== before) {
      this.items.set(key, now)
      this.#options.onChange?.(key, now, before)
    }
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

/** Reads whole objects from answers to requests. */
export interface RequestedReads {
  readonly encoding: Encoding
  /** Opens a list or watch with these parameters. Throws `ResourceExpired` for a 410. */
  readonly open: (
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ) => Promise<AsyncIterable<Uint8Array>>
  /**
   * The parameters of a list that say which version it is of, by the last observed one, and how
   * large its pages are.
   */
  readonly listQuery: (lastObserved: string | undefined) => Readonly<Record<string, string>>
}

export const requestedReads = ({ encoding, open, listQuery }: RequestedReads): InformerReads => ({
  list: async (lastObserved, signal, take) => {
    const query = listQuery(lastObserved)
    for (let next = ''; ;) {
      const decoder = listDecoder(encoding, 'object')
      for await (const chunk of await open(
        { ...query, ...(next !== '' && { continue: next }) },
        signal,
      )) {
        const { batch } = decoder.push([chunk])
        if (batch) take(batch.objects)
      }
      const { meta } = decoder.end()
      if (meta.continue === '') return meta.resourceVersion
      next = meta.continue
    }
  },
  watch: async (options, signal) => watchEvents(await open(watchQuery(options), signal), encoding),
})
