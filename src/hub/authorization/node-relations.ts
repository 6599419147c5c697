import { cursorOf, type Cursor } from '../../api/codec/cursor.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import * as resources from '../../api/kube/resources.ts'
import { podsOf, type CachedObject, type KubeletCache } from '../boot/kubelet-cache.ts'
import type { NodeRecords } from '../boot/node-dependencies.ts'
import { stringAt } from '../boot/references.ts'
import { StoreFailure } from '../store/store.ts'
import type { IsRelated } from './node-authorizer.ts'

type ObjectName = Parameters<IsRelated>[2]

/** The objects that the pods of a node name, by `nameOf`. */
export interface PodRelations {
  readonly names: ReadonlySet<string>
  /** Their claims, from which volumes and the secrets of these follow. */
  readonly claims: readonly ObjectName[]
}

const nameOf = (resource: string, { namespace, name }: ObjectName): string =>
  JSON.stringify([resource, namespace, name])

/**
 * The objects that the pods of a node name, as the API server's Node authorizer reads it (k/k
 * plugin/pkg/auth/authorizer/node/graph.go, AddPod): pods that have ended count, and of a mirror
 * pod nothing but itself. `undefined` where the pods were never listed, or one is malformed.
 */
export function podRelations(records: NodeRecords): PodRelations | undefined {
  using listed = records.cache.collection(podsOf(records.nodeName))
  if (!listed) return undefined
  const names = new Set<string>()
  const claims: ObjectName[] = []
  try {
    for (const pod of listed.objects) {
      names.add(nameOf('pods', pod))
      const { references: parsed } = records.references.of(pod, listed)
      if (parsed instanceof MalformedBody) return undefined
      for (const named of parsed.objects) {
        names.add(nameOf(qualifiedResource(named.gvr), named))
        if (named.gvr === resources.volumeClaims) claims.push(named)
      }
    }
    return { names, claims }
  } catch (cause) {
    if (cause instanceof StoreFailure) return undefined
    throw cause
  }
}

interface NodeRelationsParts {
  readonly nodeName: string
  /** The records of the node's kubelet. */
  readonly cache: () => KubeletCache
  /** The objects that its pods name now. */
  readonly pods: () => PodRelations | undefined
}

/**
 * The relations of this node to objects, by the records of its kubelet: its pods, the volumes of
 * their claims, its attachments. A kubelet does not read all objects from which an API server
 * derives relations: the hub is certain that a volume, a secret of a volume, an attachment or a
 * slice is not related only without claims, or never.
 */
export const relationsOf =
  ({ nodeName, cache, pods }: NodeRelationsParts): IsRelated =>
  (node, resource, object) => {
    if (node !== nodeName) return undefined
    if (resource === 'resourceslices.resource.k8s.io') return undefined
    if (resource === 'volumeattachments.storage.k8s.io') {
      return isAttachment(object, nodeName, cache()) || undefined
    }
    const relations = pods()
    if (!relations) return undefined
    const { names, claims } = relations
    const isNamed = names.has(nameOf(resource, object))
    if (resource === 'persistentvolumes') {
      return claims.length > 0 && (isVolumeOf(claims, object, cache()) || undefined)
    }
    return isNamed || (resource === 'secrets' && claims.length > 0 ? undefined : false)
  }

function isAttachment({ namespace, name }: ObjectName, node: string, cache: KubeletCache): boolean {
  const found = read(cache.object(resources.volumeAttachments, namespace, name))
  return found !== undefined && stringAt(found, ['spec', 'nodeName']) === node
}

/** Whether the volume refers to one of the claims. */
function isVolumeOf(
  claims: readonly ObjectName[],
  { namespace, name }: ObjectName,
  cache: KubeletCache,
): boolean {
  const volume = read(cache.object(resources.persistentVolumes, namespace, name))
  if (!volume) return false
  const of = (member: string): string => stringAt(volume, ['spec', 'claimRef', member])
  const [claimNamespace, claimName] = [of('namespace'), of('name')]
  return claims.some((claim) => claim.namespace === claimNamespace && claim.name === claimName)
}

function read(found: CachedObject | 'absent' | undefined): Cursor | undefined {
  return typeof found === 'object' ? cursorOf(found.encoding, found.gvk, found.object) : undefined
}
