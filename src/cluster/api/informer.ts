import { listDecoder } from '../../api/codec/list-decoder.ts'
import { watchEvents } from '../../api/codec/watch-decoder.ts'
import type { WatchEvent } from '../../api/codec/watch.ts'
import type { JsonObject } from '../../api/kube/json.ts'
import { namespacedName, type ApiObject } from '../../api/kube/object.ts'
import {
  ResourceExpired,
  Reflector,
  watchQuery,
  type WatchOptions,
} from '../../api/reflector/reflector.ts'
import type { ApiServer } from './api-server.ts'
import { ApiFailure, isGone } from './failure.ts'

export interface InformerOptions<Kept> {
  /** Of the collection, without a query. */
  readonly path: string
  /** Selectors. */
  readonly query?: Readonly<Record<string, string>>
  /** What is kept of an object; the object itself is let go of. `before` is what was kept of it. */
  readonly keep: (object: JsonObject, before: Kept | undefined) => Kept
  /** Called for each object that is new, changed or gone, once it is in `items`, or no longer. */
  readonly onChange?: (key: string, now: Kept | undefined, before: Kept | undefined) => void
  /** Called with each failure; it is tried again, for as long as it takes. */
  readonly onFailure?: (cause: unknown) => void
}

/** An answer of this many objects at a time bounds what both sides hold. */
const pageSize = 500

/**
 * A reflector of a collection, listed in pages, and what is kept of its objects. Holds of each
 * object what `keep` makes of it, and of an answer what has not been cut yet.
 */
export class Informer<Kept> implements AsyncDisposable {
  /** By name, or by namespace and name with a slash between. */
  readonly items = new Map<string, Kept>()
  readonly #api: ApiServer
  readonly #options: InformerOptions<Kept>
  readonly #stopped = new AbortController()
  readonly #running: Promise<void>
  readonly #listed = Promise.withResolvers<void>()
  #version: string | undefined
  /** How often it was listed. */
  lists = 0

  constructor(api: ApiServer, options: InformerOptions<Kept>) {
    this.#api = api
    this.#options = options
    const reflector = new Reflector(
      {
        listerWatcher: {
          list: (_version, signal) => this.#list(signal),
          watch: (watch, signal) => this.#watch(watch, signal),
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

  /** Whether all that there was has been listed once. */
  get synced(): boolean {
    return this.#version !== undefined
  }

  /** Resolves with the first list; never, where it is disposed of before. */
  get listed(): Promise<void> {
    return this.#listed.promise
  }

  async #list(signal: AbortSignal): Promise<void> {
    this.lists++
    const seen = new Set<string>()
    let version = ''
    let next = ''
    do {
      const { body } = await this.#open({ limit: String(pageSize), continue: next }, signal)
      const cutter = listDecoder('json', 'object')
      for await (const chunk of body) {
        const { batch } = cutter.push(chunk as Buffer)
        for (const object of batch?.objects ?? []) seen.add(this.#set(object))
      }
      const { meta } = cutter.end()
      version = meta.resourceVersion
      next = meta.continue
    } while (next !== '')
    for (const key of this.items.keys()) if (!seen.has(key)) this.#delete(key)
    this.#version = version
  }

  async #watch(
    options: WatchOptions,
    signal: AbortSignal,
  ): Promise<AsyncIterable<readonly WatchEvent[]>> {
    const { body } = await this.#open(watchQuery(options), signal)
    return watchEvents(body, 'json')
  }

  #apply(events: readonly WatchEvent[]): void {
    for (const event of events) {
      if (event.type === 'ERROR') continue
      if (event.type === 'BOOKMARK') {
        this.#version = event.resourceVersion
        continue
      }
      if (event.type === 'DELETED') this.#delete(namespacedName(event.object))
      else this.#set(event.object)
      this.#version = event.object.resourceVersion
    }
  }

  /** Throws `Expired`, or an `ApiFailure` for any other answer but 200. */
  async #open(query: Readonly<Record<string, string>>, signal: AbortSignal) {
    const { path, query: selectors } = this.#options
    const given = Object.entries({ ...selectors, ...query }).filter(([, value]) => value !== '')
    const full = `${path}?${new URLSearchParams(given)}`
    const answer = await this.#api.open({ method: 'GET', path: full, urgent: true }, signal)
    if (answer.statusCode === 200) return answer
    const failure = new ApiFailure(`GET ${full}`, answer.statusCode, await answer.body.text())
    throw isGone(failure) ? new ResourceExpired() : failure
  }

  #set({ namespace, name, bytes }: ApiObject): string {
    const key = namespacedName({ namespace, name })
    const before = this.items.get(key)
    const object = JSON.parse(Buffer.from(bytes).toString()) as JsonObject
    const kept = this.#options.keep(object, before)
    this.items.set(key, kept)
    this.#options.onChange?.(key, kept, before)
    return key
  }

  #delete(key: string): void {
    const before = this.items.get(key)
    if (before === undefined) return
    this.items.delete(key)
    this.#options.onChange?.(key, undefined, before)
  }

  /**
   * Puts in what a write was answered with, so that the watch need not be waited for, unless
   * `newer` says that the watch showed more by now.
   */
  written(key: string, object: JsonObject, newer: (now: Kept, before: Kept) => boolean): void {
    const before = this.items.get(key)
    if (before === undefined) return
    const now = this.#options.keep(object, before)
    if (newer(now, before)) this.items.set(key, now)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort()
    await this.#running
  }
}
