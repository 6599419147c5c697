import { isDeepStrictEqual } from 'node:util'
import { onAbort } from '../../base/abort.ts'
import { jitter, sleep } from '../../base/clock.ts'
import { cursorOf, type Cursor } from '../../api/codec/cursor.ts'
import { objectKind } from '../../api/codec/list.ts'
import { isObjectEvent, versionAfter, type WatchEvent } from '../../api/codec/watch.ts'
import type { Exchange, Handler, Reply, WatchReply } from '../../http/exchange/exchange.ts'
import { ownRequest, type RequestCredentials } from '../../http/exchange/own-request.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import { mediaType, type Encoding } from '../../api/kube/media-type.ts'
import { namespacedName, type ApiObject } from '../../api/kube/object.ts'
import { compareVersions, resourceVersion } from '../../api/kube/resource-version.ts'
import { pathOf } from '../../api/kube/resources.ts'
import {
  ResourceExpired,
  Reflector,
  RequestRefused,
  watchQuery,
  type BackoffTimes,
  type WatchOptions,
} from '../../api/reflector/reflector.ts'
import { refusalOf } from './refusal.ts'

/** The collection that an informer lists and watches. */
export interface InformerTarget {
  /** Its API versions in order of preference: where one is not served, the next one is tried. */
  readonly versions: readonly [GVR, ...GVR[]]
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly encoding: Encoding
  /** Only metadata (PartialObjectMetadata), always in JSON. */
  readonly onlyMetadata?: boolean
}

/** An object of the collection, valid only during the call. */
export interface InformerObject {
  readonly gvr: GVR
  readonly cursor: Cursor
  /** In JSON its text; with `onlyMetadata` it has only `metadata`. */
  readonly bytes: Uint8Array
}

/** `code`: the status code of an answer that is no list. */
export type InformerState =
  | { readonly kind: 'syncing' }
  | { readonly kind: 'synced' }
  | { readonly kind: 'refused'; readonly code: number }
  /** No answer came, or the cache has none either. */
  | { readonly kind: 'failed' }

interface InformerParts<T> {
  readonly of: InformerTarget
  readonly onBehalf: Pick<RequestCredentials, 'identity' | 'credential'>
  /**
   * Reads from an API server or, offline, from the cache; the answer is recorded under `onBehalf`.
   */
  readonly ask: Handler<Exchange>
  /** Aborts when the hub goes offline or online. */
  readonly linkChanged: () => AbortSignal
  /**
   * Reads the value of an object; `undefined`: it has none. To throw counts as a failure of the
   * list or watch.
   */
  readonly read: (object: InformerObject) => T | undefined
  /**
   * Called with all values, by `namespace/name` or the name of cluster-scoped objects: after the
   * first list, and after each change.
   */
  readonly onValues: (values: ReadonlyMap<string, T>) => void
  readonly onState: (state: InformerState) => void
  readonly onFailed: (cause: unknown) => void
}

/**
 * A refused read may have been granted or installed since. Every node of the cluster retries it, so
 * seldom; at once after `retry` or an outage.
 */
const refusedBackoff: BackoffTimes = { firstMs: 60_000, longestMs: 15 * 60_000 }

/** Hubs return to an API server at random times within this. */
const spreadMs = 500

/**
 * An informer of the hub itself: a reflector of a collection, and the values read of its objects.
 * It reads through the hub's own path to API servers and cache, so that offline it has the cached
 * state.
 */
export class HubInformer<T> implements AsyncDisposable {
  readonly #parts: InformerParts<T>
  readonly #ending = new AbortController()
  readonly #done: Promise<void>
  readonly #values = new Map<string, T>()
  #at = 0
  #isSynced = false
  #version: string | undefined
  #watch: WatchReply | undefined
  #retry = new AbortController()

  constructor(parts: InformerParts<T>) {
    this.#parts = parts
    const { signal } = this.#ending
    const reflector = new Reflector(
      {
        listerWatcher: {
          list: (_version, ending) => this.#inServedVersion(() => this.#list(ending)),
          watch: (options, ending) => this.#inServedVersion(() => this.#open(options, ending)),
        },
        version: () => this.#version,
        onRecovery: (act) => this.#onRetryDue(signal, act),
        refusedBackoff,
      },
      {
        onSynced: () => undefined,
        onOpen: () => undefined,
        onEvents: (events) => this.#apply(events),
        onClosed: () => undefined,
        onFailed: (cause) => {
          if (cause instanceof ResourceExpired) return
          parts.onFailed(cause)
          // Only a list shows that the failure is over.
          this.#version = undefined
          parts.onState(
            cause instanceof RequestRefused
              ? { kind: 'refused', code: cause.status }
              : { kind: 'failed' },
          )
        },
      },
      false,
    )
    this.#done = reflector.run(signal)
  }

  /** Retries at once where it backs off, or where the running request fails. */
  retry(): void {
    const due = this.#retry
    this.#retry = new AbortController()
    due.abort()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await this.#done
  }

  /** Tries the next API version where one is not served; after the last, the first again, later. */
  async #inServedVersion<Read>(read: () => Promise<Read>): Promise<Read> {
    for (;;) {
      try {
        return await read()
      } catch (error) {
        if (!(error instanceof RequestRefused) || error.status !== 404) throw error
        this.#at = (this.#at + 1) % this.#parts.of.versions.length
        if (this.#at === 0) throw error
      }
    }
  }

  get #gvr(): GVR {
    const { versions } = this.#parts.of
    return versions[this.#at] ?? versions[0]
  }

  /** Calls back on `retry`, and soon after the link has changed. */
  #onRetryDue(signal: AbortSignal, act: () => void): Disposable {
    const both = new DisposableStack()
    both.use(onAbort(this.#retry.signal, act))
    both.use(
      onAbort(this.#parts.linkChanged(), () => void sleep(jitter(0, spreadMs), signal).then(act)),
    )
    return both
  }

  async #list(signal: AbortSignal): Promise<void> {
    const gvr = this.#gvr
    const reply = await this.#request({ resourceVersion: '0' }, signal)
    if (reply.kind !== 'list') throw refusalOf(reply)
    const { list, representation } = reply
    const gvk = objectKind(list.gvk)
    const values = new Map<string, T>()
    for await (const { objects } of list.batches) {
      signal.throwIfAborted()
      for (const object of objects) {
        const value = this.#read(gvr, gvk, representation.encoding, object)
        if (value !== undefined) values.set(namespacedName(object), value)
      }
    }
    const { meta } = await list.end()
    this.#version = meta.resourceVersion
    this.#replace(values)
    this.#parts.onState({ kind: 'synced' })
  }

  async #open(
    options: WatchOptions,
    signal: AbortSignal,
  ): Promise<AsyncIterable<readonly WatchEvent[]>> {
    const reply = await this.#request(watchQuery(options), signal)
    if (reply.kind !== 'watch') throw refusalOf(reply)
    this.#watch = reply
    return reply.events
  }

  #read(gvr: GVR, gvk: GVK, encoding: Encoding, object: ApiObject): T | undefined {
    return this.#parts.read({ gvr, cursor: cursorOf(encoding, gvk, object), bytes: object.bytes })
  }

  #replace(values: ReadonlyMap<string, T>): void {
    if (this.#isSynced && isDeepStrictEqual(values, this.#values)) return
    this.#values.clear()
    for (const [name, value] of values) this.#values.set(name, value)
    this.#publish()
  }

  #apply(events: readonly WatchEvent[]): void {
    const watch = this.#watch
    if (events.every(({ type }) => type === 'UNREAD')) return
    const version = versionAfter(events)
    if (!watch || version === undefined || isBefore(version, this.#version))
      throw new ResourceExpired()
    this.#version = version
    let changed = false
    for (const event of events) {
      if (!isObjectEvent(event)) continue
      const name = namespacedName(event.object)
      const value =
        event.type === 'DELETED'
          ? undefined
          : this.#read(this.#gvr, watch.gvk(), watch.representation().encoding, event.object)
      if (isDeepStrictEqual(value, this.#values.get(name))) continue
      changed = true
      if (value === undefined) this.#values.delete(name)
      else this.#values.set(name, value)
    }
    if (changed) this.#publish()
  }

  #publish(): void {
    this.#isSynced = true
    this.#parts.onValues(this.#values)
  }

  #request(query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Reply> {
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

function acceptOf({ encoding, onlyMetadata }: InformerTarget, watch: boolean): string {
  if (!onlyMetadata) return mediaType(encoding)
  const kind = watch ? 'PartialObjectMetadata' : 'PartialObjectMetadataList'
  return `${mediaType('json')};as=${kind};g=meta.k8s.io;v=v1`
}

function isBefore(version: string, than: string | undefined): boolean {
  const [a, b] = [resourceVersion(version), resourceVersion(than)]
  return a === undefined || b === undefined || compareVersions(a, b) < 0
}
