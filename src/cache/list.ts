import { now } from '../base/clock.ts'
import type { ListBatch, ListEnd, ListStream } from '../codec/list.ts'
import type { Cut, CutEnd, ListCutter } from '../codec/list-cutter.ts'
import { MalformedBody } from '../codec/malformed-body.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { compareVersions, resourceVersion } from '../kube/resource-version.ts'
import type { GVK } from '../kube/gvk.ts'
import type { ResourceRequest } from '../request/request-info.ts'
import type { CollectionKey, ObjectStore, Replacement } from '../store/store.ts'
import type { RecorderHooks } from './recorder.ts'

interface RecordedListParts {
  readonly head: NonNullable<Cut['head']>
  readonly cutter: ListCutter
  /** What was cut while the head was looked for. */
  readonly started: readonly ListBatch[]
  readonly chunks: AsyncGenerator<readonly Uint8Array[]>
  readonly key: CollectionKey
  readonly info: ResourceRequest
  readonly store: ObjectStore
  readonly pages: Pages
  readonly hooks: RecorderHooks
  readonly exchange: Exchange
}

/**
 * A list on its way to the client, staged batch by batch before it is passed on. Its close is given out only when it is committed
 * whole. A list in pages is committed with its last page, or not at all.
 */
export class RecordedList implements ListStream {
  readonly gvk: GVK
  readonly head: readonly Uint8Array[]
  readonly batches: AsyncIterable<ListBatch>
  readonly #parts: RecordedListParts
  #replacement: Replacement | undefined
  #cut: CutEnd | undefined

  constructor(parts: RecordedListParts) {
    this.gvk = parts.head.gvk
    this.head = parts.head.bytes
    this.#parts = parts
    this.batches = this.#cutting()
  }

  async *#cutting(): AsyncGenerator<ListBatch> {
    const { cutter, chunks, started } = this.#parts
    this.#replacement = this.#begin()
    try {
      for (const batch of started) {
        await this.#stage(batch)
        yield batch
      }
      for await (const group of chunks) {
        for (const chunk of group) {
          const { batch } = cutter.push(chunk)
          if (!batch) continue
          await this.#stage(batch)
          yield batch
        }
      }
      this.#cut = cutter.end()
    } catch (error) {
      if (error instanceof MalformedBody) this.#parts.hooks.onMalformed(error, this.#parts.exchange)
      throw error
    } finally {
      // Cut short by the cloud or by the client, a list is no list.
      if (this.#cut === undefined) await this.#drop()
    }
  }

  /** A further page continues what its predecessor began; one whose beginning is not known is not kept. */
  #begin(): Replacement | undefined {
    const { info, pages, store, key } = this.#parts
    const token = info.query.get('continue')
    return token ? pages.take(key, token) : store.replace(key)
  }

  async #stage(batch: ListBatch): Promise<void> {
    try {
      await this.#replacement?.add(batch)
    } catch (cause) {
      await this.#drop()
      this.#parts.hooks.onStoreFailure(cause)
    }
  }

  async #drop(): Promise<void> {
    const dropped = this.#replacement
    this.#replacement = undefined
    await dropped?.[Symbol.asyncDispose]()
  }

  async end(): Promise<ListEnd> {
    if (this.#cut === undefined) throw new Error('a list has no end before its last batch')
    const { meta, extra, gvk } = this.#cut
    if (meta.continue !== '') {
      const { pages, key } = this.#parts
      if (this.#replacement) pages.put(key, meta.continue, this.#replacement)
    } else if (this.#isNews(meta.resourceVersion)) {
      await this.#commit(meta.resourceVersion, gvk, extra)
    } else {
      await this.#drop()
    }
    return this.#cut
  }

  async #commit(version: string, gvk: GVK, extra: string): Promise<void> {
    if (this.#replacement === undefined) return
    try {
      await this.#replacement.commit({ gvk, resourceVersion: version, extra })
      this.#parts.hooks.onRecorded('list')
    } catch (cause) {
      this.#parts.hooks.onStoreFailure(cause)
    } finally {
      await this.#drop()
    }
  }

  /**
   * A server that lags may answer "any version" with one older than what is kept, which then stays. Asked for the most recent, an older
   * version means that the cluster was restored, and counts.
   */
  #isNews(version: string): boolean {
    const { store, key, info } = this.#parts
    const given = resourceVersion(version)
    if (given === undefined) return false
    const kept = resourceVersion(store.list(key)?.resourceVersion)
    const mostRecent = (info.query.get('resourceVersion') ?? '') === ''
    return kept === undefined || mostRecent || compareVersions(given, kept) >= 0
  }
}

/** How many lists may wait for their next page, and for how long: a client that stops paging is not told apart from a slow one. */
const waitingLists = 64
const waitingMs = 5 * 60_000

/**
 * What the pages so far of lists in pages have staged, by collection and the token that asks for the next: a token says where a list goes
 * on, not whose it is nor in which form.
 */
export class Pages {
  readonly #waiting = new Map<string, { replacement: Replacement; since: number }>()

  put(key: CollectionKey, token: string, replacement: Replacement): void {
    const place = placeOf(key, token)
    this.#drop(place)
    this.#waiting.set(place, { replacement, since: now() })
    for (const [oldest, { since }] of this.#waiting) {
      if (this.#waiting.size <= waitingLists && now() - since < waitingMs) break
      this.#drop(oldest)
    }
  }

  take(key: CollectionKey, token: string): Replacement | undefined {
    const place = placeOf(key, token)
    const found = this.#waiting.get(place)
    this.#waiting.delete(place)
    return found?.replacement
  }

  #drop(place: string): void {
    const dropped = this.#waiting.get(place)
    this.#waiting.delete(place)
    void dropped?.replacement[Symbol.asyncDispose]()
  }
}

const placeOf = (
  { audience, gvr, namespace, ...selectors }: CollectionKey,
  token: string,
): string =>
  JSON.stringify([
    audience.identity,
    audience.form,
    gvr.group,
    gvr.version,
    gvr.resource,
    namespace ?? null,
    selectors.labelSelector,
    selectors.fieldSelector,
    token,
  ])
