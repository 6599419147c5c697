import { MalformedBody } from '../../api/codec/malformed-body.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { CachedCollection, KubeletCache } from './kubelet-cache.ts'
import { podDependencies, type PodDependencies } from './pod-dependencies.ts'
import type { KnownPodReferences } from './pod-references.ts'

/** The records of a node's pods, and of the objects that these refer to. */
export interface NodeRecords {
  readonly nodeName: string
  readonly cache: KubeletCache
  /** The references of the pods, parsed once for all walks. */
  readonly references: KnownPodReferences
}

/** What to make of a pod that starts again with the node. */
interface PodReader<T> {
  readonly read: (needs: PodDependencies, pod: ApiObject) => T
  /** The pod, or an object that it leads to, cannot be understood. */
  readonly malformed: (pod: ApiObject, cause: MalformedBody) => T
}

/**
 * Walks over the listed pods and the objects that they refer to; `undefined` for each pod that does
 * not start again with the node. Throws a `StoreFailure` where the list cannot be read.
 */
export function* bootPods<T>(
  listed: CachedCollection,
  { nodeName, cache, references }: NodeRecords,
  { read, malformed }: PodReader<T>,
): Generator<T | undefined> {
  for (const pod of listed.objects) {
    const { startsAtBoot, references: parsed } = references.of(pod, listed)
    try {
      if (!startsAtBoot) yield undefined
      else if (parsed instanceof MalformedBody) yield malformed(pod, parsed)
      else yield read(podDependencies(parsed, pod, cache, nodeName), pod)
    } catch (cause) {
      if (!(cause instanceof MalformedBody)) throw cause
      yield malformed(pod, cause)
    }
  }
}
