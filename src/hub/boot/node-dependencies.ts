import { elapsed } from '../../base/clock.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { FindReferencedObjects } from '../store/named-object.ts'
import { StoreFailure } from '../store/store.ts'
import {
  kubeletCache,
  podsOf,
  podsVersion,
  type CachedCollection,
  type KubeletCache,
} from './kubelet-cache.ts'
import {
  podDependencies,
  type PodDependencies,
  type ResolvedReference,
} from './pod-dependencies.ts'
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

/**
 * All dependencies of the pods that start again with the node. `undefined` where the pods were
 * never listed, or a pod is malformed: then any object may be one.
 */
export function nodeDependencies(records: NodeRecords): readonly ResolvedReference[] | undefined {
  const listed = records.cache.collection(podsOf(records.nodeName))
  if (!listed) return undefined
  try {
    const walk = bootPods(listed, records, {
      read: ({ objects }) => objects,
      malformed: (_pod, cause) => {
        throw cause
      },
    })
    return [...walk].flatMap((objects) => objects ?? [])
  } catch (cause) {
    if (cause instanceof StoreFailure || cause instanceof MalformedBody) return undefined
    throw cause
  }
}

/** The references of unchanged pods are resolved at most so often: claims are bound rarely. */
const neededMs = 1000

/** The objects that the node's pods refer to: eviction spares these. */
export function neededBy(
  nodeName: string,
  references: KnownPodReferences,
  onFailure: (cause: unknown) => void,
): FindReferencedObjects {
  let last: { readonly of: string; readonly until: number } | undefined
  let all: ReturnType<FindReferencedObjects>
  return (store) => {
    try {
      const of = podsVersion(store, nodeName)
      if (last?.of !== of || last.until < elapsed()) {
        all = nodeDependencies({ nodeName, cache: kubeletCache(store, nodeName), references })
        last = { of, until: elapsed() + neededMs }
      }
      return all
    } catch (cause) {
      onFailure(cause)
      return undefined
    }
  }
}
