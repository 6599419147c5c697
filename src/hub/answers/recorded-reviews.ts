import { createHmac } from 'node:crypto'
import { now } from '../../base/clock.ts'
import { asBuffer } from '../../base/bytes.ts'
import { lruCache } from '../../base/lru-cache.ts'
import { tokenOf, type Review } from '../../api/codec/review.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import { parseJson, isObject, type JsonObject } from '../../api/kube/json.ts'
import { claimsOf, claimTimeMs } from '../../api/kube/web-token.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import { unprovenIdentity, type Identity } from '../../api/request/identity.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import type { ObjectKey, ObjectStore } from '../store/store.ts'

/** The status of a review, and when an API server gave it, in milliseconds since the epoch. */
export interface ReviewAnswer {
  readonly status: JsonObject
  readonly confirmedAt: number
}

/**
 * The most answers of one caller; beyond them the oldest quarter is forgotten. Anyone may ask about
 * any number of own rights: each answer takes half a kilobyte of memory as long as it is stored,
 * which is more than it counts for towards the size of the store.
 */
export const mostRecordedReviews = 2_048

/** A longer status is not recorded, and the one before it is forgotten. */
export const longestStatus = 16 * 1024

/** The resource of answers, as they are stored. No path leads to it: its name has a slash. */
export const reviewResource: GVR = {
  group: 'authorization.k8s.io',
  version: 'v1',
  resource: 'reviews/answered',
}

/**
 * The last answers of API servers to access reviews and token reviews, by the identity of the
 * caller and by the exact question, as it was sent. On the disk a question is a keyed hash:
 * it may contain a token, and a reader of the file must not be able to guess it.
 */
export class RecordedReviews {
  readonly #store: ObjectStore
  readonly #hashKey: Uint8Array
  /** So many answers of a caller are stored at most. */
  readonly #atMost = lruCache<Identity, number>(1_000)

  constructor(store: ObjectStore, hashKey: Uint8Array) {
    this.#store = store
    this.#hashKey = hashKey
  }

  /**
   * The last answer to the same question of the same caller, but for a token that has expired
   * since. `undefined`: there is none.
   */
  last(exchange: Exchange, info: ResourceRequest, review: Review): ReviewAnswer | undefined {
    const key = this.#key(exchange, info, review)
    if (!key || hasExpired(tokenOf(review))) return undefined
    return this.#stored(key)
  }

  /**
   * Records the status of the answer. Resolves after the commit; `undefined` where there is nothing
   * to write.
   */
  put(
    exchange: Exchange,
    info: ResourceRequest,
    review: Review,
    status: JsonObject,
  ): Promise<void> | undefined {
    const key = this.#key(exchange, info, review)
    const text = JSON.stringify(status)
    if (!key) return undefined
    const known = this.#stored(key)
    // The answer before it is outdated, and may have been yes.
    if (text.length > longestStatus) return known && this.#store.forget(key)
    if (!known && isRefusedToken(review, status)) return undefined
    if (!known) this.#makeRoom(key)
    const { namespace, name, gvr } = key
    const kind: GVK = { group: gvr.group, version: gvr.version, kind: 'ReviewStatus' }
    const bytes = Buffer.from(text)
    return this.#store.put(key, kind, { namespace, name, uid: '', resourceVersion: '', bytes })
  }

  #key(exchange: Exchange, info: ResourceRequest, review: Review): ObjectKey | undefined {
    if (exchange.identity === unprovenIdentity) return undefined
    const { kind, bytes } = review
    const question = JSON.stringify([kind, info.namespace ?? ''])
    const hash = createHmac('sha256', this.#hashKey).update(`review ${question}`).update(bytes)
    return {
      partition: {
        identity: exchange.identity,
        representation: objectRepresentation('json').key,
      },
      gvr: reviewResource,
      namespace: '',
      name: hash.digest('base64url'),
    }
  }

  #stored(key: ObjectKey): ReviewAnswer | undefined {
    const stored = this.#store.get(key)
    if (typeof stored !== 'object') return undefined
    const status = parseJson(asBuffer(stored.object.bytes).toString())
    return isObject(status) ? { status, confirmedAt: stored.confirmedAt } : undefined
  }

  /** Lists what is stored of the caller only where there may be too many. */
  #makeRoom({ partition, gvr }: Pick<ObjectKey, 'partition' | 'gvr'>): void {
    const { identity } = partition
    const most = this.#atMost.get(identity) ?? mostRecordedReviews
    if (most < mostRecordedReviews) {
      this.#atMost.set(identity, most + 1)
      return
    }
    const names = this.#store.partitions(gvr, identity).flatMap((each) => each.names)
    const oldest = names.toSorted((a, b) => a.confirmedAt - b.confirmedAt)
    const gone = names.length < mostRecordedReviews ? [] : oldest.slice(0, mostRecordedReviews / 4)
    this.#atMost.set(identity, names.length - gone.length + 1)
    for (const { namespace, name } of gone)
      void this.#store.forget({ partition, gvr, namespace, name }).catch(() => undefined)
  }
}

/**
 * A refused token, which is stored only in place of an accepted one: any client of the kubelet can
 * make it review any number of invented tokens, whose refusals would evict the answers about
 * genuine ones.
 */
const isRefusedToken = ({ kind }: Review, status: JsonObject): boolean =>
  kind === 'TokenReview' && status['authenticated'] !== true

/** False for a token without an expiry. */
const hasExpired = (token: string): boolean =>
  (claimTimeMs(claimsOf(token)?.claims['exp']) ?? Infinity) <= now()
