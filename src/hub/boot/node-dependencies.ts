import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { StoreFailure } from '../store/store.ts'
import { podsOf, type KubeletCache } from './kubelet-cache.ts'
import { podDependencies, type ResolvedReference } from './pod-dependencies.ts'
import { bootReferences } from './references.ts'

/**
 * All dependencies of the pods that start again with the node. `undefined` where the pods were
 * never listed, or a pod is malformed: then any object may be one.
 */
export function nodeDependencies(
  cache: KubeletCache,
  nodeName: string,
): readonly ResolvedReference[] | undefined {
  using listed = cache.collection(podsOf(nodeName))
  if (!listed) return undefined
  try {
    const found: ResolvedReference[] = []
    for (const object of listed.objects) {
      const references = bootReferences(object, listed)
      if (references) found.push(...podDependencies(references, object, cache, nodeName).objects)
    }
    return found
  } catch (cause) {
    if (cause instanceof StoreFailure || cause instanceof MalformedBody) return undefined
    throw cause
  }
}
