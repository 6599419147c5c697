import { follow } from '../../base/abort.ts'
import { elapsed, jitter, sleep } from '../../base/clock.ts'
import type { ErrorEvent, WatchEvent } from '../codec/watch.ts'

/**
 * The API server's answer is a refusal: who may not read a collection, and what is not served, is
 * not asked for again soon. `status` is its HTTP status.
 */
export class RequestRefused extends Error {
  readonly code = 'REFUSED'
  readonly status: number
  constructor(status: number, why = `answered ${status}`) {
    super(why)
    this.status = status
  }
}

/** A watch cannot follow the version that is held: the collection has to be listed. */
export class ResourceExpired extends Error {
  readonly code = 'EXPIRED'
  constructor() {
    super('the version held has expired: the collection is listed')
  }
}

export interface WatchOptions {
  readonly resourceVersion: string
  /** After how many seconds the API server ends the watch. */
  readonly timeoutSeconds: number
}

/** What a request for such a watch says, with bookmarks. */
export const watchQuery = ({ resourceVersion, timeoutSeconds }: WatchOptions) => ({
  allowWatchBookmarks: 'true',
  resourceVersion,
  timeoutSeconds: String(timeoutSeconds),
  watch: 'true',
})

/**
 * How a reflector reads one collection, as client-go's ListerWatcher. All throw `Refused` and
 * `Expired` for what these say, and any other error for what is to be tried again.
 */
export interface ListerWatcher {
  /**
   * Lists the collection and takes all of it in. `resourceVersion` is '0' for a list of any age and
   * '' for a consistent read.
   */
  list(resourceVersion: '' | '0', signal: AbortSignal): Promise<void>
  /** Opens a watch with bookmarks. */
  watch(options: WatchOptions, signal: AbortSignal): Promise<AsyncIterable<readonly WatchEvent[]>>
  /**
   * Whether the API server's state is older than what is held, so that the cluster was restored
   * from a backup: a watch would wait for a version that comes much later, or never.
   */
  isRestored?(signal: AbortSignal): Promise<boolean>
}

export interface ReflectorParts {
  readonly listerWatcher: ListerWatcher
  /** The version that is held now; `undefined`: nothing is, and it has to be listed. */
  readonly version: () => string | undefined
  /**
   * Resolves when an API server can be asked, to whether that had to be waited for: the cluster may
   * be another one since. Absent: one can always be asked.
   */
  readonly waitUntilReachable?: (signal: AbortSignal) => Promise<boolean>
  /**
   * Calls back, until disposed, when a failure may have been overcome: where that was during a try
   * that fails or since, the next one is due at once.
   */
  readonly onRecovery?: (act: () => void) => Disposable
}

/** What hears how it goes. */
export interface ReflectorHandler {
  /** What is held is whole, at the version that is held; a watch from there is opened next. */
  onSynced(): void
  onOpen(): void
  /** Takes events in. Throws `Expired` where that leaves a hole. No ERROR is among them. */
  onEvents(events: readonly WatchEvent[]): void
  /** The watch that was open is over. */
  onClosed(): void
  /** It failed. A `Refused` ends the reflector; after anything else it tries again. */
  onFailed(cause: unknown): void
}

/** After a failure the next try is made so much later, twice as late after each further one. */
const firstPauseMs = 250
const longestPauseMs = 30_000

/** How long a list may take, on however thin a link. */
const listMs = 10 * 60_000

/** A watch that lasted so long was no failure, even without an event. */
const soundMs = 1_000

/**
 * Keeps up with one collection, as client-go's reflector: watches it from the version that is held,
 * and lists it where nothing is held or the version has expired. By list and not by WatchList, as
 * API servers compress lists.
 */
export class Reflector {
  readonly #parts: ReflectorParts
  readonly #handler: ReflectorHandler
  #hasExpired = false
  /** Set while it is possible that the cluster was restored from a backup. */
  mayBeRestored: boolean

  /** `inDoubt`: what is held is from before the API server could be asked. */
  constructor(parts: ReflectorParts, handler: ReflectorHandler, inDoubt = true) {
    this.#parts = parts
    this.#handler = handler
    this.mayBeRestored = inDoubt
  }

  /** Returns when `signal` aborts, and when the API server refuses. */
  async run(signal: AbortSignal): Promise<void> {
    let pause = firstPauseMs
    while (!signal.aborted) {
      const hurry = new AbortController()
      using _hurry = this.#parts.onRecovery?.(() => hurry.abort())
      try {
        if (await this.#parts.waitUntilReachable?.(signal)) this.mayBeRestored = true
        signal.throwIfAborted()
        await this.#sync(signal)
        if (await this.#watch(signal)) {
          pause = firstPauseMs
          continue
        }
      } catch (error) {
        if (signal.aborted) return
        this.#handler.onFailed(error)
        if (error instanceof RequestRefused) return
        if (error instanceof ResourceExpired) this.#hasExpired = true
        else this.mayBeRestored = true
      }
      using _ending = follow(signal, hurry)
      await sleep(jitter(pause / 2, pause), hurry.signal)
      pause = hurry.signal.aborted ? firstPauseMs : Math.min(2 * pause, longestPauseMs)
    }
  }

  /** Lists, unless a watch can follow what is held. */
  async #sync(signal: AbortSignal): Promise<void> {
    const { version, listerWatcher } = this.#parts
    if (this.#hasExpired || version() === undefined) await this.#list('0', signal)
    else if (this.mayBeRestored && (await listerWatcher.isRestored?.(signal)))
      await this.#list('', signal)
    this.#hasExpired = this.mayBeRestored = false
    // It was listed, and is not held: there is nothing that a watch can follow.
    if (version() === undefined) throw new ResourceExpired()
    this.#handler.onSynced()
  }

  async #list(resourceVersion: '' | '0', parent: AbortSignal): Promise<void> {
    const ending = new AbortController()
    using _parent = follow(parent, ending)
    using _over = { [Symbol.dispose]: () => ending.abort() }
    void sleep(listMs, ending.signal).then(() => ending.abort())
    await this.#parts.listerWatcher.list(resourceVersion, ending.signal)
  }

  /** Whether that went well, so that the next watch may follow at once. */
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
        this.#handler.onEvents(events)
        gotEvents = true
      }
    } finally {
      this.#handler.onClosed()
    }
    const lasted = elapsed() - began
    // What ended it before its time may be another cluster when it can be asked again.
    if (lasted < timeoutSeconds * 1000) this.mayBeRestored = true
    return gotEvents || lasted >= soundMs
  }
}

const failureOf = ({ status }: ErrorEvent): Error =>
  status.code === 410 ? new ResourceExpired() : new Error(status.message)
