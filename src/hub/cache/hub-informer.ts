import { isDeepStrictEqual } from 'node:util'
import { onAbort } from '../../base/abort.ts'
import { jitter, sleep } from '../../base/clock.ts'
import { cursorOf, type Cursor } from '../../api/codec/cursor.ts'
import { objectKind } from '../../api/codec/list.ts'
import type { WatchEvent } from '../../api/codec/watch.ts'
import type { Exchange, Handler, Reply } from '../../http/exchange/exchange.ts'
import { ownRequest } from '../../http/exchange/own-request.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import { mediaType, type Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { hubIdentity } from '../../api/request/identity.ts'
import { collectionUrl } from '../../api/kube/resources.ts'
import { Informer } from '../../api/reflector/informer.ts'
import {
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
  /** Reads from an API server or, offline, from the cache; the answer is recorded as the hub's. */
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

const asHub = { identity: hubIdentity, credential: 'node' } as const

/** Hubs return to an API server at random times within this. */
const spreadMs = 500

/**
 * An informer of the hub itself: the values read of the objects of a collection. It reads through
 * the hub's own path to API servers and cache, so that offline it has the cached state, and shares
 * the upstream watches of clients.
 */
export class HubInformer<T> implements AsyncDisposable {
  readonly #parts: InformerParts<T>
  readonly #ending = new AbortController()
  readonly #informer: Informer<T>
  #at = 0
  #isListed = false
  #hasChanged = true
  /** The form of the objects that come. */
  #form: () => { readonly gvk: GVK; readonly encoding: Encoding } = () => ({
    gvk: { group: '', version: '', kind: '' },
    encoding: 'json',
  })
  #retry = new AbortController()

  constructor(parts: InformerParts<T>) {
    this.#parts = parts
    this.#informer = new Informer<T>({
      reads: {
        list: (_last, signal, take) => this.#inServedVersion(() => this.#list(signal, take)),
        watch: (options, signal) => this.#inServedVersion(() => this.#open(options, signal)),
      },
      transform: (object, before) => this.#read(object, before),
      onChange: () => (this.#hasChanged = true),
      onSynced: () => {
        this.#publish()
        parts.onState({ kind: 'synced' })
      },
      onEvents: () => this.#publish(),
      onFailure: (cause) => {
        parts.onFailed(cause)
        parts.onState(
          cause instanceof RequestRefused
            ? { kind: 'refused', code: cause.status }
            : { kind: 'failed' },
        )
      },
      onRecovery: (act) => this.#onRetryDue(act),
      refusedBackoff,
    })
  }

  /** Retries at once where it backs off, or where the running request fails. */
  retry(): void {
    const due = this.#retry
    this.#retry = new AbortController()
    due.abort()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await this.#informer[Symbol.asyncDispose]()
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
  #onRetryDue(act: () => void): Disposable {
    const { signal } = this.#ending
    const both = new DisposableStack()
    both.use(onAbort(this.#retry.signal, act))
    both.use(
      onAbort(this.#parts.linkChanged(), () => void sleep(jitter(0, spreadMs), signal).then(act)),
    )
    return both
  }

  async #list(signal: AbortSignal, take: (objects: readonly ApiObject[]) => void): Promise<string> {
    const reply = await this.#request({ resourceVersion: '0' }, signal)
    if (reply.kind !== 'list') throw refusalOf(reply)
    const { list, representation } = reply
    const form = { gvk: objectKind(list.gvk), encoding: representation.encoding }
    this.#form = () => form
    for await (const { objects } of list.batches) {
      signal.throwIfAborted()
      take(objects)
    }
    const { meta } = await list.end()
    this.#isListed = true
    return meta.resourceVersion
  }

  async #open(
    options: WatchOptions,
    signal: AbortSignal,
  ): Promise<AsyncIterable<readonly WatchEvent[]>> {
    const reply = await this.#request(watchQuery(options), signal)
    if (reply.kind !== 'watch') throw refusalOf(reply)
    this.#form = () => ({ gvk: reply.gvk(), encoding: reply.representation().encoding })
    return reply.events
  }

  /** The value of an object; the one before where it is alike. */
  #read(object: ApiObject, before: T | undefined): T | undefined {
    const { gvk, encoding } = this.#form()
    const cursor = cursorOf(encoding, gvk, object)
    const value = this.#parts.read({ gvr: this.#gvr, cursor, bytes: object.bytes })
    return isDeepStrictEqual(value, before) ? before : value
  }

  #publish(): void {
    if (!this.#isListed || !this.#hasChanged) return
    this.#hasChanged = false
    this.#parts.onValues(this.#informer.items)
  }

  #request(query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Reply> {
    const { of, ask } = this.#parts
    const { labelSelector = '', fieldSelector = '', namespace } = of
    const url = collectionUrl(this.#gvr, namespace, { labelSelector, fieldSelector, ...query })
    const accept = acceptOf(of, query['watch'] === 'true')
    return ask(ownRequest({ ...asHub, method: 'GET', url, accept, gzip: true, signal }))
  }
}

function acceptOf({ encoding, onlyMetadata }: InformerTarget, watch: boolean): string {
  if (!onlyMetadata) return mediaType(encoding)
  const kind = watch ? 'PartialObjectMetadata' : 'PartialObjectMetadataList'
  return `${mediaType('json')};as=${kind};g=meta.k8s.io;v=v1`
}

interface Unreadable {
  /** The reason, as part of a sentence. */
  readonly why: string
  /** The advice, as the continuation of that sentence; may be empty. */
  readonly advice: string
}

/**
 * Why the hub cannot read a collection, by the status code of an answer that is no list. Only a 403
 * is a matter of rights.
 */
export function unreadable(code: number): Unreadable {
  switch (code) {
    case 403:
      return {
        why: 'the API server does not let this node get, list and watch them',
        advice: ', nodehub manifests --part rbac has the right',
      }
    case 401:
      return {
        why: "the API server does not accept the hub's credentials",
        advice: ', /readyz?verbose says why',
      }
    case 200:
      return { why: 'the answer is no list of them', advice: ': is that an API server?' }
    default:
      return { why: 'the API server does not list them', advice: '' }
  }
}
