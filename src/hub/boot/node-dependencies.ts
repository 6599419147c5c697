import { cursorOf } from '../../api/codec/cursor.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { StoreFailure } from '../store/store.ts'
import { podsOf, type KubeletCache } from './kubelet-cache.ts'
import { podDependencies, type ResolvedReference } from './pod-dependencies.ts'
import { referencesOf, whyNotForBoot } from './references.ts'

/**
 * What the pods that start again with the node refer to, and what that leads to. `undefined` where
 * the pods were never listed, or one of them cannot be understood: then nobody knows what is not
 * referred to.
 */
export function nodeDependencies(
  cache: KubeletCache,
  nodeName: string,
): readonly ResolvedReference[] | undefined {
  const listed = cache.collection(podsOf(nodeName))
  if (!listed) return undefined
  try {
    const found: ResolvedReference[] = []
    for (const object of listed.objects) {
      const pod = cursorOf(listed.encoding, listed.gvk, object)
      if (whyNotForBoot(pod) !== undefined) continue
      found.push(...podDependencies(referencesOf(pod), object, cache, nodeName).objects)
    }
    return found
  } catch (cause) {
    if (cause instanceof StoreFailure || cause instanceof MalformedBody) return undefined
    throw cause
  }
}
