import { elapsed, jitter, sleep } from '../../base/clock.ts'
import { listCutter } from '../../codec/list-cutter.ts'
import { watchCutter } from '../../codec/watch-cutter.ts'
import type { JsonObject } from '../../kube/json.ts'
import type { ApiObject } from '../../kube/object.ts'
import type { ApiServer } from './api-server.ts'
import { ApiFailure, isGone } from './failure.ts'

export interface ListWatchOptions<Kept> {
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

/** client-go's waits after a failure (tools/cache/reflector.go). */
const firstWaitMs = 800
const longestWaitMs = 30_000

/** An answer of this many objects at a time bounds what both sides hold. */
const pageSize = 500

/** A watch that ended sooner than this, and told nothing, did not work. */
const soonMs = 1000

/**
 * Keeps in step with a collection: lists it in pages, watches from the list's version with
 * bookmarks, goes on from the last version when a watch ends or breaks, and lists again where that
 * version is refused. Holds of each object what `keep` makes of it, and of an answer what has not
 * been cut yet.
 */
export class ListWatch<Kept> implements AsyncDisposable {
  /** By name, or by namespace and name with a slash between. */
  readonly items = new Map<string, Kept>()
  readonly #api: ApiServer
  readonly #options: ListWatchOptions<Kept>
  readonly #stopped = new AbortController()
  readonly #running: Promise<void>
  readonly #listed = Promise.withResolvers<void>()
  #version = ''
  #synced = false
  /** How often it was listed. */
  lists = 0

  constructor(api: ApiServer, options: ListWatchOptions<Kept>) {
    this.#api = api
    this.#options = options
    this.#running = this.#run()
  }

  /** Whether all that there was has been listed once. */
  get synced(): boolean {
    return this.#synced
  }

  /** Resolves with the first list; never, where it is disposed of before. */
  get listed(): Promise<void> {
    return this.#listed.promise
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped
    let wait = firstWaitMs
    while (!signal.aborted) {
      try {
        if (this.#version === '') await this.#list(signal)
        if (await this.#watch(signal)) {
          wait = firstWaitMs
          continue
        }
      } catch (cause) {
        if (signal.aborted) return
        if (isGone(cause)) this.#version = ''
        else this.#options.onFailure?.(cause)
      }
      await sleep(wait * jitter(1, 2), signal)
      wait = Math.min(wait * 2, longestWaitMs)
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    this.lists++
    const seen = new Set<string>()
    let version = ''
    let next = ''
    do {
      const { body } = await this.#open({ limit: String(pageSize), continue: next }, signal)
      const cutter = listCutter('json', 'object')
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
    this.#synced = true
    this.#listed.resolve()
  }

  /** Whether it is to be watched on at once. */
  async #watch(signal: AbortSignal): Promise<boolean> {
    const began = elapsed()
    const query = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: this.#version,
      timeoutSeconds: String(Math.ceil(jitter(300, 600))),
    }
    const { body } = await this.#open(query, signal)
    const cutter = watchCutter('json', 'object')
    let told = false
    for await (const chunk of body) {
      for (const event of cutter.push(chunk as Buffer)) {
        if (event.type === 'ERROR') {
          const { code } = event.status
          throw new ApiFailure(`watch of ${this.#options.path}`, code, JSON.stringify(event.status))
        }
        told = true
        if (event.type === 'BOOKMARK') {
          this.#version = event.resourceVersion
          continue
        }
        if (event.type === 'DELETED') this.#delete(keyOf(event.object))
        else this.#set(event.object)
        this.#version = event.object.resourceVersion
      }
    }
    return told || elapsed() - began > soonMs
  }

  async #open(query: Readonly<Record<string, string>>, signal: AbortSignal) {
    const { path, query: selectors } = this.#options
    const given = Object.entries({ ...selectors, ...query }).filter(([, value]) => value !== '')
    const full = `${path}?${new URLSearchParams(given)}`
    const answer = await this.#api.open({ method: 'GET', path: full, urgent: true }, signal)
    if (answer.statusCode === 200) return answer
    throw new ApiFailure(`GET ${full}`, answer.statusCode, await answer.body.text())
  }

  #set({ namespace, name, bytes }: ApiObject): string {
    const key = keyOf({ namespace, name })
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
   * `newer` says that the watch told more by now.
   */
  told(key: string, object: JsonObject, newer: (now: Kept, before: Kept) => boolean): void {
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

const keyOf = ({ namespace, name }: { namespace: string; name: string }): string =>
  namespace === '' ? name : `${namespace}/${name}`
