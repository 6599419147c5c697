import type { JsonObject } from '../../api/kube/json.ts'
import { textAt, valueAt } from '../../api/kube/json-at.ts'
import { parseApiVersion } from '../../api/kube/gvk.ts'
import type { ApiServer } from '../api/api-server.ts'
import { writerOf } from '../components/writer.ts'
import { controllerOf, type ControllerReference, type PodFacts } from './cluster-state.ts'

/** The object that an operator changes to change pods, with the pods that it has on nodes. */
export interface Owner {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** Of the object in the API; absent for an unknown kind. */
  readonly path?: string
  /** As it was read; absent where the path is. */
  readonly object?: JsonObject
  /** The tool that writes it, or an owner of it. */
  readonly writer?: string
  /** All of its pods that are on a node and have not ended. */
  readonly pods: readonly PodFacts[]
}

/** Kinds that are read, by group and kind, with their resource. */
const resources: Readonly<Record<string, string>> = {
  '/Pod': 'pods',
  '/ReplicationController': 'replicationcontrollers',
  'apps/ReplicaSet': 'replicasets',
  'apps/Deployment': 'deployments',
  'apps/DaemonSet': 'daemonsets',
  'apps/StatefulSet': 'statefulsets',
  'batch/Job': 'jobs',
  'batch/CronJob': 'cronjobs',
  'apps.openyurt.io/YurtAppSet': 'yurtappsets',
  'apps.openyurt.io/YurtAppDaemon': 'yurtappdaemons',
}

/** A pod, its ReplicaSet, its Deployment, its YurtAppSet: no chain of known kinds is longer. */
const longestChain = 5

/**
 * Kinds that are read and patched in another version than a reference names, where that is served:
 * a patch of a YurtAppSet in v1alpha1 loses its nodepoolSelector and tweaks in the conversion
 * (openyurt pkg/apis/apps/v1alpha1/yurtappset_conversion.go).
 */
const versionsWithAll: Readonly<Record<string, string>> = {
  'apps.openyurt.io/YurtAppSet': 'v1beta1',
}

/** The paths of an object of a kind that is known here, the best first; none for others. */
function pathsOf(
  { apiVersion, kind, name }: Pick<ControllerReference, 'apiVersion' | 'kind' | 'name'>,
  namespace: string,
): readonly string[] {
  const { group, version } = parseApiVersion(apiVersion)
  const key = `${group}/${kind}`
  if (!Object.hasOwn(resources, key) || !/^v\d\w*$/.test(version)) return []
  const segments = [namespace, resources[key] ?? '', name].map(encodeURIComponent)
  return [...new Set([versionsWithAll[key] ?? version, version])].map(
    (each) =>
      `${group === '' ? '/api' : `/apis/${group}`}/${each}/namespaces/${segments.join('/')}`,
  )
}

type OwnerObject = Omit<Owner, 'pods'>

/**
 * The owners of all propagated pods, each once, by following `ownerReferences` with `controller:
 * true` to the last one. An object counts as owner only if its uid is the one that is named. Where
 * an owner is gone the pods are left out: they are being deleted, too. Ended pods count for a
 * CronJob alone, which makes pods again.
 */
export async function ownersOf(
  api: ApiServer,
  pods: readonly PodFacts[],
): Promise<readonly Owner[]> {
  const found = new Map<string, Promise<OwnerObject | undefined>>()
  const ownerOf = (pod: PodFacts): Promise<OwnerObject | undefined> => {
    const { controller, namespace } = pod
    const uid = controller?.uid ?? pod.uid
    const known = found.get(uid)
    if (known) return known
    const first = controller ?? { apiVersion: 'v1', kind: 'Pod', name: pod.name, uid }
    const resolved = resolve(api, first, namespace)
    found.set(uid, resolved)
    return resolved
  }
  const owners = new Map<string, OwnerObject>()
  for (const pod of pods.filter(({ propagated }) => propagated)) {
    const owner = await ownerOf(pod)
    if (owner && (!pod.ended || isDue(owner))) owners.set(owner.uid, owner)
  }
  // A pod of another ReplicaSet, or of a child in another pool, may be on a standard node.
  const namespaces = new Set([...owners.values()].map(({ namespace }) => namespace))
  const podsOf = new Map<string, PodFacts[]>()
  for (const pod of pods) {
    if (pod.ended || !namespaces.has(pod.namespace)) continue
    const owner = await ownerOf(pod)
    if (!owner || !owners.has(owner.uid)) continue
    const its = podsOf.get(owner.uid)
    if (its) its.push(pod)
    else podsOf.set(owner.uid, [pod])
  }
  return [...owners.values()].map((owner) => ({ ...owner, pods: podsOf.get(owner.uid) ?? [] }))
}

/** Whether an owner without a running pod makes propagated ones again. */
const isDue = ({ kind, object }: OwnerObject): boolean =>
  kind === 'CronJob' &&
  valueAt(object, 'spec', 'jobTemplate', 'spec', 'template', 'spec', 'hostNetwork') !== true

async function resolve(
  api: ApiServer,
  first: ControllerReference,
  namespace: string,
): Promise<OwnerObject | undefined> {
  let reference = first
  let below: OwnerObject | undefined
  for (let depth = 0; depth < longestChain; depth++) {
    const paths = pathsOf(reference, namespace)
    const named = { ...reference, namespace, ...(below?.writer && { writer: below.writer }) }
    if (paths.length === 0) return named
    const { path, object } = await firstServed(api, paths)
    if (object === undefined || textAt(object, 'metadata', 'uid') !== reference.uid)
      return undefined
    const writer = writerOf(object) ?? below?.writer
    const apiVersion = textAt(object, 'apiVersion')
    below = { ...named, apiVersion, path, object, ...(writer !== undefined && { writer }) }
    const next = controllerOf(object)
    if (next === undefined) return below
    reference = next
  }
  return below
}

async function firstServed(
  api: ApiServer,
  paths: readonly string[],
): Promise<{ readonly path: string; readonly object?: JsonObject }> {
  for (const path of paths) {
    const object = await api.get(path)
    if (object !== undefined) return { path, object }
  }
  return { path: '' }
}

/** `Deployment shop/web`, without control characters: kinds and names are not checked. */
export const ownerName = ({
  kind,
  namespace,
  name,
}: Pick<Owner, 'kind' | 'namespace' | 'name'>): string => printable(`${kind} ${namespace}/${name}`)

/** A text of the API on one line, without control characters. */
export const printable = (text: string): string => text.replaceAll(/\p{C}/gu, '\u{fffd}')
