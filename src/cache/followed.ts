import { isDeepStrictEqual } from 'node:util'
import { follow, onAbort } from '../base/abort.ts'
import { elapsed, jitter, sleep } from '../base/clock.ts'
import { cursorOf, type Cursor } from '../codec/cursor.ts'
import { objectKind } from '../codec/list.ts'
import type { ErrorEvent, WatchEvent } from '../codec/watch.ts'
import type { Exchange, Handler, Reply } from '../exchange/exchange.ts'
import { ownRequest, type OnBehalf } from '../exchange/own-request.ts'
import type { GVK, GVR } from '../kube/gvk.ts'
import { mediaType, type Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import { compareVersions, resourceVersion } from '../kube/resource-version.ts'
import { pathOf } from '../kube/resources.ts'

/** A collection that the hub itself wants to know. */
export interface Followed {
  /**
   * In the API versions it is asked for in, most wanted first: where one is not served, the next
   * one is tried.
   */
  readonly versions: readonly [GVR, ...GVR[]]
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly encoding: Encoding
  /** Only metadata (PartialObjectMetadata), always in JSON. */
  readonly onlyMetadata?: boolean
}

/** An object of it, to be read at once. */
export interface FollowedObject {
  readonly gvr: GVR
  readonly cursor: Cursor
  /** In JSON its text; of metadata only, it has `metadata`. */
  readonly bytes: Uint8Array
}

/** How it stands: `code` is that of an API server's answer that is no list. */
export type Standing =
  | { readonly kind: 'asking' }
  | { readonly kind: 'known' }
  | { readonly kind: 'refused'; readonly code: number }
  /** Nobody answered, or the cache has nothing either. */
  | { readonly kind: 'failed' }

export interface FollowedParts<T> {
  readonly of: Followed
  readonly onBehalf: Pick<OnBehalf, 'identity' | 'credential'>
  /** Asks the cloud or, offline, the cache; what is answered is recorded under `onBehalf`. */
  readonly ask: Handler<Exchange>
  /** Aborts when the hub goes offline or online. */
  readonly linkChanged: () => AbortSignal
  /**
   * What is wanted of an object; `undefined`: nothing. Throws where it cannot be read, which is
   * told as a failure.
   */
  readonly read: (object: FollowedObject) => T | undefined
  /**
   * All that is wanted of the collection, by `namespace/name` or the name of what is
   * cluster-scoped: first, and when it has changed.
   */
  readonly onValues: (values: ReadonlyMap<string, T>) => void
  readonly onStanding: (standing: Standing) => void
  readonly onFailed: (cause: unknown) => void
}

/** After a failure the next try is made so much later, twice as late after each further one. */
const firstPauseMs = 500
const longestPauseMs = 30_000

/**
 * What is refused is asked for again when somebody may have granted it, or installed it: ever more
 * rarely, since every node of the cluster does so; at once where somebody says so (`again`), or the
 * link was gone.
 */
const firstRefusedMs = 60_000
const longestRefusedMs = 15 * 60_000

/** Over how long hubs come back to an API server that is there again. */
const spreadMs = 500

/** How long a list may take, on however thin a link. */
const listMs = 5 * 60_000

/** A watch that lasted so long was no failure, even if it said nothing. */
const soundMs = 1_000

const refusals = new Set([400, 401, 403, 404, 405, 406])

class Refused extends Error {
  readonly code: number
  constructor(code: number) {
    super(`answered ${code}`)
    this.code = code
  }
}

/**
 * Follows a collection in the hub's own name, for as long as it lives: lists it and watches it from
 * there on, through the hub's own way to the cloud and its cache, so that offline it is told what
 * the cache knows. A watch that was told something and ended is gone on with from its version; in
 * any other case the collection is listed, which also finds out a cluster that was restored from a
 * backup.
 */
export class FollowedCollection<T> implements AsyncDisposable {
  readonly #parts: FollowedParts<T>
  readonly #ending = new AbortController()
  readonly #done: Promise<void>
  readonly #values = new Map<string, T>()
  #at = 0
  #told = false
  #wake: () => void = () => undefined
  /** Whether it is to be tried at once when what is under way has failed. */
  #again = false

  constructor(parts: FollowedParts<T>) {
    this.#parts = parts
    this.#done = this.#run(this.#ending.signal)
  }

  /** Tries at once where it waits to try again, or where the list that is under way fails. */
  again(): void {
    this.#again = true
    this.#wake()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await this.#done
  }

  async #run(signal: AbortSignal): Promise<void> {
    let pause = firstPauseMs
    let refused = firstRefusedMs
    while (!signal.aborted) {
      const began = elapsed()
      try {
        this.#again = false
        const version = await this.#list(signal)
        this.#parts.onStanding({ kind: 'known' })
        refused = firstRefusedMs
        await this.#watchFrom(version, signal)
        if (elapsed() - began >= soundMs) pause = firstPauseMs
      } catch (error) {
        if (signal.aborted) return
        if (isNotServed(error) && this.#tryNextVersion()) continue
        this.#parts.onFailed(error)
        this.#parts.onStanding(standingOf(error))
        if (error instanceof Refused) {
          await this.#rest(refused, signal)
          refused = Math.min(2 * refused, longestRefusedMs)
          continue
        }
      }
      const changed = await this.#rest(pause, signal)
      pause = changed ? firstPauseMs : Math.min(2 * pause, longestPauseMs)
    }
  }

  /** Whether there is one; after the last it is the first one's turn again, later. */
  #tryNextVersion(): boolean {
    this.#at = (this.#at + 1) % this.#parts.of.versions.length
    return this.#at > 0
  }

  get #gvr(): GVR {
    const { versions } = this.#parts.of
    return versions[this.#at] ?? versions[0]
  }

  /** Whether the link has changed meanwhile, so that all may be otherwise. */
  async #rest(ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#again) {
      this.#again = false
      return false
    }
    const over = new AbortController()
    let changed = false
    this.#wake = () => over.abort()
    using _ending = follow(signal, over)
    using _link = onAbort(this.#parts.linkChanged(), () => {
      changed = true
      over.abort()
    })
    await sleep(jitter(ms / 2, ms), over.signal)
    this.#wake = () => undefined
    if (changed) await sleep(jitter(0, spreadMs), signal)
    return changed
  }

  async #list(parent: AbortSignal): Promise<string> {
    const ending = new AbortController()
    using _parent = follow(parent, ending)
    using _over = { [Symbol.dispose]: () => ending.abort() }
    void sleep(listMs, ending.signal).then(() => ending.abort())
    const gvr = this.#gvr
    const reply = await this.#ask({ resourceVersion: '0' }, ending.signal)
    if (reply.kind !== 'list') throw refusalOf(reply)
    const { list, form } = reply
    const gvk = objectKind(list.gvk)
    const values = new Map<string, T>()
    for await (const { objects } of list.batches) {
      ending.signal.throwIfAborted()
      for (const object of objects) {
        const value = this.#read(gvr, gvk, form.encoding, object)
        if (value !== undefined) values.set(nameOf(object), value)
      }
    }
    const { meta } = await list.end()
    this.#replace(values)
    return meta.resourceVersion
  }

  /** Watches for as long as each watch is told something. Throws what became of the last one. */
  async #watchFrom(version: string, signal: AbortSignal): Promise<void> {
    let at: string | undefined = version
    while (at !== undefined && !signal.aborted) at = await this.#watch(at, signal)
  }

  /** The version it has come to; `undefined`: the collection has to be listed. */
  async #watch(from: string, parent: AbortSignal): Promise<string | undefined> {
    const ending = new AbortController()
    using _parent = follow(parent, ending)
    using _over = { [Symbol.dispose]: () => ending.abort() }
    const gvr = this.#gvr
    const reply = await this.#ask(
      {
        allowWatchBookmarks: 'true',
        resourceVersion: from,
        timeoutSeconds: String(Math.round(jitter(300, 600))),
        watch: 'true',
      },
      ending.signal,
    )
    if (reply.kind !== 'watch') throw refusalOf(reply)
    let at: string | undefined
    for await (const events of reply.events) {
      if (events.length === 0) continue
      const error = events.find((event) => event.type === 'ERROR')
      if (error) {
        if (isExpired(error)) return undefined
        throw new Error(error.status.message)
      }
      const version = versionOf(events.at(-1))
      if (version === undefined || isBefore(version, at ?? from)) return undefined
      at = version
      this.#apply(events, (object) => this.#read(gvr, reply.gvk(), reply.form().encoding, object))
    }
    return at
  }

  #read(gvr: GVR, gvk: GVK, encoding: Encoding, object: ApiObject): T | undefined {
    return this.#parts.read({ gvr, cursor: cursorOf(encoding, gvk, object), bytes: object.bytes })
  }

  #replace(values: ReadonlyMap<string, T>): void {
    if (this.#told && isDeepStrictEqual(values, this.#values)) return
    this.#values.clear()
    for (const [name, value] of values) this.#values.set(name, value)
    this.#tell()
  }

  #apply(events: readonly WatchEvent[], read: (object: ApiObject) => T | undefined): void {
    let changed = false
    for (const event of events) {
      if (event.type === 'BOOKMARK' || event.type === 'ERROR') continue
      const name = nameOf(event.object)
      const value = event.type === 'DELETED' ? undefined : read(event.object)
      if (isDeepStrictEqual(value, this.#values.get(name))) continue
      changed = true
      if (value === undefined) this.#values.delete(name)
      else this.#values.set(name, value)
    }
    if (changed) this.#tell()
  }

  #tell(): void {
    this.#told = true
    this.#parts.onValues(this.#values)
  }

  #ask(query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Reply> {
    const { of, onBehalf, ask } = this.#parts
    const { labelSelector, fieldSelector, namespace } = of
    const parameters = new URLSearchParams({
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
      ...query,
    })
    const url = `${pathOf(this.#gvr, namespace)}?${parameters}`
    const accept = acceptOf(of, query['watch'] === 'true')
    return ask(ownRequest({ ...onBehalf, method: 'GET', url, accept, gzip: true, signal }))
  }
}

function acceptOf({ encoding, onlyMetadata }: Followed, watch: boolean): string {
  if (!onlyMetadata) return mediaType(encoding)
  const kind = watch ? 'PartialObjectMetadata' : 'PartialObjectMetadataList'
  return `${mediaType('json')};as=${kind};g=meta.k8s.io;v=v1`
}

const nameOf = ({ namespace, name }: ApiObject): string =>
  namespace === '' ? name : `${namespace}/${name}`

function refusalOf(reply: Reply): Error {
  const code = reply.kind === 'upgrade' ? 0 : reply.status
  return refusals.has(code) || code === 200 ? new Refused(code) : new Error(`answered ${code}`)
}

const isNotServed = (error: unknown): boolean => error instanceof Refused && error.code === 404

/** The cache refuses, too, what it does not have; that says nothing of the cloud. */
const standingOf = (error: unknown): Standing =>
  error instanceof Refused ? { kind: 'refused', code: error.code } : { kind: 'failed' }

const isExpired = ({ status }: ErrorEvent): boolean => status.code === 410

function versionOf(event: WatchEvent | undefined): string | undefined {
  if (event === undefined || event.type === 'ERROR') return undefined
  return event.type === 'BOOKMARK' ? event.resourceVersion : event.object.resourceVersion
}

function isBefore(version: string, than: string): boolean {
  const [a, b] = [resourceVersion(version), resourceVersion(than)]
  return a === undefined || b === undefined || compareVersions(a, b) < 0
}
