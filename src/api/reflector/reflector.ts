import { follow } from '../../base/abort.ts'
import { elapsed, jitter, sleep } from '../../base/clock.ts'
import type { ErrorEvent, WatchEvent } from '../codec/watch.ts'

/**
 * The API server refuses the collection: it is not served, or the identity may not read it. The
 * reflector ends, or retries by `refusedBackoff`. `status` is the HTTP status.
 */
export class RequestRefused extends Error {
  readonly code = 'REFUSED'
  readonly status: number
  constructor(status: number, why = `answered ${status}`) {
    super(why)
    this.status = status
  }
}

/** A watch cannot continue from the held version: the reflector has to list the collection. */
export class ResourceExpired extends Error {
  readonly code = 'EXPIRED'
  constructor() {
    super('the version held has expired: the collection is listed')
  }
}

/** The collection was listed and is not held, as where the store has no room for it. */
export class ListNotHeld extends Error {
  readonly code = 'NOT_HELD'
  constructor() {
    super('the list of the collection is not held')
  }
}

export interface WatchOptions {
  readonly resourceVersion: string
  /** After how many seconds the API server ends the watch. */
  readonly timeoutSeconds: number
}

/** The query of a watch with bookmarks. */
export const watchQuery = ({ resourceVersion, timeoutSeconds }: WatchOptions) => ({
  allowWatchBookmarks: 'true',
  resourceVersion,
  timeoutSeconds: String(timeoutSeconds),
  watch: 'true',
})

/**
 * How a reflector reads one collection, as client-go's ListerWatcher. All methods throw
 * `RequestRefused` and `ResourceExpired`, and any other error for a failure to retry.
 */
export interface ListerWatcher {
  /** Lists the collection at any age, and replaces the held state. */
  list(signal: AbortSignal): Promise<void>
  /** Opens a watch with bookmarks. */
  watch(options: WatchOptions, signal: AbortSignal): Promise<AsyncIterable<readonly WatchEvent[]>>
}

export interface ReflectorParts {
  readonly listerWatcher: ListerWatcher
  /** The held version; `undefined` if nothing is held and the collection has to be listed. */
  readonly version: () => string | undefined
  /** Resolves when an API server is healthy. Absent: one always is. */
  readonly waitUntilReachable?: (signal: AbortSignal) => Promise<void>
  /** Calls back, until disposed, when a failure may be over: the reflector then retries at once. */
  readonly onRecovery?: (act: () => void) => Disposable
  /** The pauses after refusals. Absent: a refusal ends the reflector. */
  readonly refusedBackoff?: BackoffTimes
}

/** The first pause, which doubles after each further failure up to the longest one. */
export interface BackoffTimes {
  readonly firstMs: number
  readonly longestMs: number
}

/** Receives what the reflector reads. */
export interface ReflectorHandler {
  onOpen(): void
  /** Applies events, without ERROR. Throws `ResourceExpired` if one is missing. */
  onEvents(events: readonly WatchEvent[]): void | Promise<void>
  /** The open watch has ended. */
  onClosed(): void
  /** A try failed. Without `refusedBackoff` a `RequestRefused` ends the reflector. */
  onFailed(cause: unknown): void
}

const failureBackoff: BackoffTimes = { firstMs: 250, longestMs: 30_000 }

/** Each failure costs the API server a whole list. */
const notHeldBackoff: BackoffTimes = { firstMs: 1_000, longestMs: 3_600_000 }

/** A list may take this long, even on a slow link. */
const listMs = 10 * 60_000

/** A watch that lasted this long is no failure, even without an event. */
const soundMs = 1_000

/**
 * Keeps up with one collection, as client-go's reflector: watches it from the held version, and
 * lists it if nothing is held or the version has expired. docs/design/decisions.md has why it does
 * not use WatchList.
 */
export class Reflector {
  readonly #parts: ReflectorParts
  readonly #handler: ReflectorHandler
  #hasExpired = false

  constructor(parts: ReflectorParts, handler: ReflectorHandler) {
    this.#parts = parts
    this.#handler = handler
  }

  /** Returns when `signal` aborts or, without `refusedBackoff`, when the API server refuses. */
  async run(signal: AbortSignal): Promise<void> {
    const failures = new Backoff(failureBackoff)
    const notHeld = new Backoff(notHeldBackoff)
    const { refusedBackoff } = this.#parts
    const refusals = refusedBackoff && new Backoff(refusedBackoff)
    while (!signal.aborted) {
      const retry = new AbortController()
      using _recovery = this.#parts.onRecovery?.(() => retry.abort())
      let backoff = failures
      try {
        await this.#parts.waitUntilReachable?.(signal)
        signal.throwIfAborted()
        await this.#sync(signal)
        notHeld.reset()
        if (await this.#watch(signal)) {
          failures.reset()
          refusals?.reset()
          continue
        }
      } catch (error) {
        if (signal.aborted) return
        this.#handler.onFailed(error)
        if (error instanceof RequestRefused) {
          if (!refusals) return
          backoff = refusals
        } else if (error instanceof ListNotHeld) backoff = notHeld
        else if (error instanceof ResourceExpired) this.#hasExpired = true
      }
      using _ending = follow(signal, retry)
      await backoff.pause(retry.signal)
      if (retry.signal.aborted) failures.reset()
    }
  }

  /** Lists, unless a watch can continue from the held version. */
  async #sync(signal: AbortSignal): Promise<void> {
    const { version } = this.#parts
    if (version() === undefined || this.#hasExpired) await this.#list(signal)
    this.#hasExpired = false
    if (version() === undefined) throw new ListNotHeld()
  }

  async #list(parent: AbortSignal): Promise<void> {
    const ending = new AbortController()
    using _parent = follow(parent, ending)
    using _over = { [Symbol.dispose]: () => ending.abort() }
    void sleep(listMs, ending.signal).then(() => ending.abort())
    await this.#parts.listerWatcher.list(ending.signal)
  }

  /** Whether the watch succeeded, so that the next one may follow at once. */
  async #watch(parent: AbortSignal): Promise<boolean> {
    const ending = new AbortController()
    using _parent = follow(parent, ending)
    using _over = { [Symbol.dispose]: () => ending.abort() }
    const began = elapsed()
    const timeoutSeconds = Math.round(jitter(300, 600))
    const resourceVersion = this.#parts.version() ?? ''
    const { listerWatcher } = this.#parts
    const watch = await listerWatcher.watch({ resourceVersion, timeoutSeconds }, ending.signal)
    this.#handler.onOpen()
    let gotEvents = false
    try {
      for await (const events of watch) {
        const error = events.find((event) => event.type === 'ERROR')
        if (error) throw failureOf(error)
        if (events.length === 0) continue
        await this.#handler.onEvents(events)
        gotEvents = true
      }
    } finally {
      this.#handler.onClosed()
    }
    return gotEvents || elapsed() - began >= soundMs
  }
}

const failureOf = ({ status }: ErrorEvent): Error =>
  status.code === 410 ? new ResourceExpired() : new Error(status.message)

/** Half of each pause is random, as many clients may have failed at once. */
class Backoff {
  readonly #times: BackoffTimes
  #ms: number

  constructor(times: BackoffTimes) {
    this.#times = times
    this.#ms = times.firstMs
  }

  reset(): void {
    this.#ms = this.#times.firstMs
  }

  async pause(signal: AbortSignal): Promise<void> {
    const ms = this.#ms
    this.#ms = Math.min(2 * ms, this.#times.longestMs)
    await sleep(jitter(ms / 2, ms), signal)
  }
}
