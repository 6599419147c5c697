import type { Logger } from 'pino'
import { elapsed } from '../../base/clock.ts'
import { kubeletCache, podsOf } from '../boot/kubelet-cache.ts'
import { nodeDependencies } from '../boot/node-dependencies.ts'
import type { KnownPodReferences } from '../boot/pod-references.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import { nodeIdentity } from '../../api/request/identity.ts'
import type { NamedObject, FindReferencedObjects } from '../store/named-object.ts'
import type { ObjectStore } from '../store/store.ts'

/** The references of unchanged pods are resolved at most so often: claims are bound rarely. */
const neededMs = 1000

/** The objects that the node's pods refer to: eviction spares these. */
export function neededBy(
  nodeName: string,
  references: KnownPodReferences,
  log: Logger,
): FindReferencedObjects {
  let last:
    | {
        readonly of: string
        readonly until: number
        readonly all: ReturnType<FindReferencedObjects>
      }
    | undefined
  return (store): readonly NamedObject[] | undefined => {
    try {
      const of = podsVersion(store, nodeName)
      if (last?.of !== of || last.until < elapsed()) {
        const cache = kubeletCache(store, nodeName)
        const all = nodeDependencies({ nodeName, cache, references })
        last = { of, until: elapsed() + neededMs, all }
      }
      return last.all
    } catch (err) {
      log.error({ err }, 'cannot resolve the references of the pods')
      return undefined
    }
  }
}

/** Changes with every change of the pods. It reads no object. */
export function podsVersion(store: ObjectStore, nodeName: string): string {
  const { gvr, fieldSelector = '' } = podsOf(nodeName)
  const versions = (['protobuf', 'json'] as const).map((encoding) =>
    store.version({
      partition: { identity: nodeIdentity, representation: objectRepresentation(encoding).key },
      gvr,
      labelSelector: '',
      fieldSelector,
    }),
  )
  return versions.join(' ')
}
