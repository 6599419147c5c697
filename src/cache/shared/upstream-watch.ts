import { follow, onAbort } from '../../base/abort.ts'
import { elapsed, jitter, sleep } from '../../base/clock.ts'
import type { ErrorEvent, WatchEvent } from '../../codec/watch.ts'
import { wholeText } from '../../exchange/chunks.ts'
import type { BytesReply, Exchange, Handler, Reply } from '../../exchange/exchange.ts'
import { ownRequest } from '../../exchange/own-request.ts'
import { mediaType } from '../../kube/media-type.ts'
import { compareVersions, isNewer, resourceVersion } from '../../kube/resource-version.ts'
import { pathOf } from '../../kube/resources.ts'
import type { Form } from '../../request/form.ts'
import { shared } from '../../request/identity.ts'
import type { CollectionKey, ObjectStore } from '../../store/store.ts'

/** The way to the API servers. */
export interface Link {
  readonly online: () => boolean | undefined
  /** Aborts when `online` changes. */
  readonly changed: () => AbortSignal
}

/** How the hub asks the cloud in its own name. */
export interface Ways {
  /** The answer is recorded before it is given on: what it says is committed when it is read. */
  readonly recorded: Handler<Exchange, Reply>
  readonly unrecorded: Handler<Exchange, BytesReply>
}

export interface UpstreamWatchParts {
  readonly key: CollectionKey
  readonly form: Form
  readonly store: ObjectStore
  readonly ways: Ways
  readonly link: Link
}

/** Who is told what becomes of it. */
export interface UpstreamListener {
  /**
   * The collection is stored, as of the version the store tells; what was told before does not
   * continue it if that is another.
   */
  onListed(): void
  onOpen(): void
  /** What has come, committed. */
  onEvents(events: readonly WatchEvent[]): void
  onLost(): void
  /** What has come could not be stored, so that it may not be told. */
  onUnstored(): void
  /**
   * It failed; it is tried again soon, or, where it is `refused`, only when somebody asks for it
   * later.
   */
  onFailed(cause: unknown, refused: boolean): void
}

/**
 * Why it cannot be had at all: who may not, and what there is not, is asked for again much later.
 */
class Refused extends Error {
  readonly code = 'REFUSED'
}

/** What is not stored, and what is forgotten upstream, has to be listed. */
class MustList extends Error {
  readonly code = 'MUST_LIST'
  constructor() {
    super('what is stored cannot be gone on with')
  }
}

const refusals = new Set([401, 403, 404, 405, 406])

/** After a failure the next try is made so much later, twice as late after each further one. */
const firstPauseMs = 250
const longestPauseMs = 30_000

/** Over how long hubs and collections come back to an API server that is there again. */
const spreadMs = 500

/** How long a list may take, on however thin a link. */
const listMs = 10 * 60_000

/** A watch that lasted so long was no failure, even if it said nothing. */
const soundMs = 1_000

/**
 * Follows one collection whole: watches it from its stored version on, and lists it where that
 * cannot be. A list, because API servers compress lists and no WatchLists. Returns when `signal`
 * aborts, or when the hub may not read the collection.
 */
export class UpstreamWatch {
  readonly #parts: UpstreamWatchParts
  readonly #listener: UpstreamListener
  /** Set where what is stored cannot be gone on with. */
  #mustList = false
  /** Set while it is possible that the cluster was restored from a backup. */
  #inDoubt = true

  constructor(parts: UpstreamWatchParts, listener: UpstreamListener) {
    this.#parts = parts
    this.#listener = listener
  }

  async run(signal: AbortSignal): Promise<void> {
    let pause = firstPauseMs
    while (!signal.aborted) {
      if (this.#parts.link.online() !== true) {
        this.#inDoubt = true
        await this.#backOnline(signal)
        continue
      }
      try {
        const sound = await this.#once(signal)
        if (sound) {
          pause = firstPauseMs
          continue
        }
      } catch (error) {
        if (signal.aborted) return
        this.#listener.onFailed(error, error instanceof Refused)
        if (error instanceof Refused) return
        if (error instanceof MustList) this.#mustList = true
        else this.#inDoubt = true
      }
      await sleep(jitter(pause / 2, pause), signal)
      pause = Math.min(2 * pause, longestPauseMs)
    }
  }

  async #backOnline(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    using _left = onAbort(signal, resolve)
    using _changed = onAbort(this.#parts.link.changed(), resolve)
    await promise
    if (!signal.aborted) await sleep(jitter(0, spreadMs), signal)
  }

  /** One list if need be, and one watch. Whether that went well; throws what else became of it. */
  async #once(signal: AbortSignal): Promise<boolean> {
    const { store, key } = this.#parts
    if (this.#mustList || store.version(key) === undefined) await this.#list(signal, '0')
    else if (this.#inDoubt && (await this.#isOlder(signal))) await this.#list(signal, '')
    this.#mustList = this.#inDoubt = false
    const version = store.version(key)
    if (version === undefined) {
      // The store does not take it: nothing can be shared.
      this.#listener.onUnstored()
      throw new MustList()
    }
    this.#listener.onListed()
    return this.#watch(signal, version)
  }

  async #list(parent: AbortSignal, version: string): Promise<void> {
    const ending = new AbortController()
    using _parent = follow(parent, ending)
    using _over = { [Symbol.dispose]: () => ending.abort() }
    const slow = sleep(listMs, ending.signal).then(() => ending.abort())
    const reply = await this.#ask(version === '' ? {} : { resourceVersion: version }, ending.signal)
    if (reply.kind !== 'list' || reply.form.key !== this.#parts.form.key) throw refusalOf(reply)
    for await (const _ of reply.list.batches) ending.signal.throwIfAborted()
    await reply.list.end()
    ending.abort()
    await slow
  }

  /**
   * Whether the cluster is older than what is stored of it, so that it was restored from a backup:
   * a watch would wait for a version that comes much later or never. One object is read
   * consistently, which no server that lags answers from what it has.
   */
  async #isOlder(parent: AbortSignal): Promise<boolean> {
    const ending = new AbortController()
    using _parent = follow(parent, ending)
    using _over = { [Symbol.dispose]: () => ending.abort() }
    const { key, ways, store } = this.#parts
    const url = `${pathOf(key.gvr)}?limit=1`
    const asked = { ...asHub, url, accept: mediaType('json'), signal: ending.signal }
    const reply = await ways.unrecorded(ownRequest(asked))
    if (reply.status !== 200) throw refusalOf(reply)
    const { metadata } = JSON.parse(await wholeText(reply.source, peekBytes)) as Peeked
    return isNewer(store.version(key), metadata?.resourceVersion)
  }

  async #watch(parent: AbortSignal, version: string): Promise<boolean> {
    const ending = new AbortController()
    using _parent = follow(parent, ending)
    using _over = { [Symbol.dispose]: () => ending.abort() }
    const began = elapsed()
    const seconds = Math.round(jitter(300, 600))
    let open = false
    let told = false
    try {
      const reply = await this.#ask(
        {
          allowWatchBookmarks: 'true',
          resourceVersion: version,
          timeoutSeconds: String(seconds),
          watch: 'true',
        },
        ending.signal,
      )
      if (reply.kind !== 'watch') throw refusalOf(reply)
      open = true
      this.#listener.onOpen()
      for await (const events of reply.events) {
        const error = events.find((event) => event.type === 'ERROR')
        if (error) throw failureOf(error)
        if (reply.form().key !== this.#parts.form.key) throw new Refused('answered in another form')
        this.#told(events)
        told = true
      }
    } finally {
      if (open) this.#listener.onLost()
    }
    const lasted = elapsed() - began
    // Whoever ended it before its time may be another cluster's when he is there again.
    if (lasted < seconds * 1000) this.#inDoubt = true
    return told || lasted >= soundMs
  }

  #told(events: readonly WatchEvent[]): void {
    const { store, key } = this.#parts
    const stored = resourceVersion(store.version(key))
    const version = resourceVersion(versionOf(events.at(-1)))
    if (version === undefined) throw new MustList()
    if (stored === undefined || compareVersions(stored, version) < 0) {
      this.#listener.onUnstored()
      throw new MustList()
    }
    // Nothing that continues what is stored can be older; the next try finds out what it is.
    if (compareVersions(version, stored) < 0) throw new Error('the watch tells of past versions')
    this.#listener.onEvents(events)
  }

  #ask(query: Record<string, string>, signal: AbortSignal): Promise<Reply> {
    const { key, form, ways } = this.#parts
    const parameters = new URLSearchParams(query)
    const path = pathOf(key.gvr)
    const url = parameters.size === 0 ? path : `${path}?${parameters}`
    return ways.recorded(
      ownRequest({ ...asHub, url, accept: mediaType(form.encoding), gzip: true, signal }),
    )
  }
}

const asHub = { method: 'GET', identity: shared, credential: 'node' } as const

interface Peeked {
  readonly metadata?: { readonly resourceVersion?: string }
}

/** More than one object takes (etcd takes 1.5 MiB). */
const peekBytes = 4 * 1024 * 1024

function versionOf(event: WatchEvent | undefined): string | undefined {
  if (event === undefined || event.type === 'ERROR') return undefined
  return event.type === 'BOOKMARK' ? event.resourceVersion : event.object.resourceVersion
}

function refusalOf(reply: Reply): Error {
  const status = reply.kind === 'upgrade' ? 0 : reply.status
  if (status === 410) return new MustList()
  if (refusals.has(status) || status === 200) return new Refused(`answered ${status}`)
  return new Error(`answered ${status}`)
}

const failureOf = ({ status }: ErrorEvent): Error =>
  status.code === 410 ? new MustList() : new Error(status.message)
