import { LRUCache } from 'lru-cache'
import { elapsed, now } from '../../base/clock.ts'
import { readObject } from '../../api/codec/object.ts'
import { tokenIn, tokenSpec } from '../../api/codec/token-request.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import { encodingOf, type Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { pods } from '../../api/kube/resources.ts'
import { claimsOf, claimTimeMs } from '../../api/kube/web-token.ts'
import { unprovenIdentity } from '../../api/request/identity.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { tokenKey } from '../answers/keys.ts'
import type { Partition, ObjectKey, ObjectStore } from '../store/store.ts'
import { tokenResource, podOfToken } from '../store/token-name.ts'

/** The most tokens of one caller: some for each pod of a full node. */
export const mostTokens = 1_024

/** The tokens of a caller are swept at most so often. */
export const sweepMs = 10 * 60_000

/** A token as the store has it. */
export interface CachedToken {
  readonly key: ObjectKey
  readonly gvk: GVK
  readonly object: ApiObject
}

/** Stores tokens, and removes expired ones and those of deleted pods. */
export class TokenCache {
  readonly #store: ObjectStore
  readonly #swept = new LRUCache<string, number>({ max: 256 })

  constructor(store: ObjectStore) {
    this.#store = store
  }

  /** Resolves after the commit; `undefined` where the caller has too many. */
  put({ key, gvk, object }: CachedToken, encoding: Encoding): Promise<void> | undefined {
    this.#sweep(key.partition, encoding)
    const names = this.#store.names(key.partition, tokenResource)
    const isThere = names.some(
      ({ namespace, name }) => namespace === key.namespace && name === key.name,
    )
    if (!isThere && names.length >= mostTokens) return undefined
    return this.#store.put(key, gvk, object)
  }

  /**
   * Removes useless tokens before the next write is committed. A failed removal is repeated at the
   * next sweep.
   */
  #sweep(partition: Partition, encoding: Encoding): void {
    const place = JSON.stringify(partition)
    if (elapsed() - (this.#swept.get(place) ?? -Infinity) < sweepMs) return
    this.#swept.set(place, elapsed())
    const listsPods = this.#store
      .collections(partition, pods, undefined)
      .some(({ key }) => key.labelSelector === '' && isOfNode.test(key.fieldSelector))
    for (const named of this.#store.names(partition, tokenResource)) {
      const key = { partition, gvr: tokenResource, ...named }
      if (this.#isOfUse(key, encoding, listsPods)) continue
      void this.#store.forget(key).catch(() => undefined)
    }
  }

  /** A pod is deleted if the caller lists pods, as a kubelet does, and has none with this uid. */
  #isOfUse(key: ObjectKey, encoding: Encoding, listsPods: boolean): boolean {
    const { partition, namespace } = key
    const pod = podOfToken(key.name)
    if (pod && listsPods) {
      const stored = this.#store.get({ partition, gvr: pods, namespace, name: pod.name })
      if (typeof stored !== 'object' || stored.object.uid !== pod.uid) return false
    }
    const stored = this.#store.get(key)
    if (typeof stored !== 'object') return false
    const { exp } = claimsOf(tokenIn({ encoding, ...stored }))?.claims ?? {}
    return (claimTimeMs(exp) ?? 0) > now()
  }
}

/** All pods, or all of a node: a list that contains the pod if it exists. */
const isOfNode = /^(spec\.nodeName=[^,]*)?$/

/**
 * The token to store from the answer to a token request; `undefined` where request or answer is of
 * another kind, and for unproven callers. Throws `MalformedBody`.
 */
export function cachedTokenOf(
  exchange: Exchange,
  { info, content }: { readonly info: ResourceRequest; readonly content: Buffer },
  answer: { readonly encoding: Encoding; readonly body: Buffer },
): CachedToken | undefined {
  const requestEncoding = encodingOf(exchange.headers.get('content-type') ?? 'application/json')
  const representation = exchange.representations.find(
    ({ encoding, projection }) => encoding === answer.encoding && projection === 'object',
  )
  if (
    requestEncoding === undefined ||
    representation === undefined ||
    exchange.identity === unprovenIdentity
  )
    return undefined
  const spec = tokenSpec({
    encoding: requestEncoding,
    ...readObject(requestEncoding, 'object', content),
  })
  const answered = readObject(answer.encoding, 'object', answer.body)
  const token = tokenIn({ encoding: answer.encoding, ...answered })
  if (spec === undefined || token === '') return undefined
  const key = tokenKey(exchange, info, representation, spec)
  const { namespace, name } = key
  // A TokenRequest has no version: the last answer counts.
  const { bytes } = answered.object
  return {
    key,
    gvk: answered.gvk,
    object: { namespace, name, uid: '', resourceVersion: '', bytes },
  }
}
