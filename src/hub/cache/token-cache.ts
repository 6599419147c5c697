import { LRUCache } from 'lru-cache'
import { elapsed, now } from '../../base/clock.ts'
import { tokenIn } from '../../api/codec/token-request.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import { pods } from '../../api/kube/resources.ts'
import { claimsOf, claimTimeMs } from '../../api/kube/web-token.ts'
import type { Partition, ObjectKey, ObjectStore } from '../store/store.ts'
import { tokenResource, podOfToken } from '../store/token-name.ts'
import type { CachedToken } from './cached-token.ts'

/** How many tokens are kept for one caller: some for each pod of a full node. */
export const mostTokens = 1_024

/** How often those of a caller are looked through for what is of no use any more, at most. */
export const sweepMs = 10 * 60_000

/**
 * Keeps tokens, and forgets those that have expired and those of pods that are gone: no more are
 * kept than are of use.
 */
export class TokenCache {
  readonly #store: ObjectStore
  readonly #swept = new LRUCache<string, number>({ max: 256 })

  constructor(store: ObjectStore) {
    this.#store = store
  }

  /** Resolves when it is committed; `undefined` where there is no room for it. */
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
   * Forgets what is of no use, before the next write is committed. What cannot be forgotten is next
   * time.
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

  /** A pod is gone if the caller lists pods, as a kubelet does, and knows of none with this uid. */
  #isOfUse(key: ObjectKey, encoding: Encoding, listsPods: boolean): boolean {
    const { partition, namespace } = key
    const pod = podOfToken(key.name)
    if (pod && listsPods) {
      const found = this.#store.get({ partition, gvr: pods, namespace, name: pod.name })
      if (typeof found !== 'object' || found.object.uid !== pod.uid) return false
    }
    const found = this.#store.get(key)
    if (typeof found !== 'object') return false
    const { exp } = claimsOf(tokenIn({ encoding, ...found }))?.claims ?? {}
    return (claimTimeMs(exp) ?? 0) > now()
  }
}

/** All pods, or all of a node: a list that would have the pod if it were there. */
const isOfNode = /^(spec\.nodeName=[^,]*)?$/
