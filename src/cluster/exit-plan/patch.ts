import type { Json, JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt, withAt } from '../../api/kube/json-at.ts'
import { parseApiVersion } from '../../api/kube/gvk.ts'
import { mergePatch } from '../../api/kube/patch/merge-patch.ts'
import { mergeSchemaOf } from '../../api/kube/patch/merge-schema.ts'
import { strategicMergePatch } from '../../api/kube/patch/strategic-merge-patch.ts'
import { podsOf, portsOf } from '../../node/lint/pod.ts'
import { affinityKeptOff } from '../components/placement.ts'
import { editedPorts } from './ports.ts'

/** Where the pods of an owner are to live without the filter. */
export type Intent = 'host-network' | 'keep-off'

export interface PlannedPatch {
  /** As `kubectl patch --type` has it. */
  readonly type: 'strategic' | 'merge'
  readonly body: JsonObject
  /** The object as it is once patched, before the API server gives it its defaults. */
  readonly after: JsonObject
}

/** The content of the owner's patch besides `hostNetwork` and ports. */
export interface PatchOptions {
  readonly intent: Intent
  /** Keeps the pods on the nodes of their pools. */
  readonly nodeSelector: Readonly<Record<string, string>>
  /** Whether a disruption budget covers the pods: then at most one at a time may be away. */
  readonly oneAtATime: boolean
}

interface Template {
  readonly path: readonly string[]
  readonly workload: string
}

const antiAffinity = [
  'affinity',
  'podAntiAffinity',
  'requiredDuringSchedulingIgnoredDuringExecution',
] as const

/**
 * The way to the pod template of an object, and the kind of workload that has it; `undefined` for
 * an object without one.
 */
export function templateIn(object: JsonObject): Template | undefined {
  const [pod] = podsOf(object)
  if (pod === undefined || pod.kind === 'Pod') return undefined
  const path = pod.base.map(String)
  const workload = path.includes('deploymentTemplate')
    ? 'Deployment'
    : path.includes('statefulSetTemplate')
      ? 'StatefulSet'
      : pod.kind
  return { path, workload }
}

/**
 * The patch with which an object's pods live as they do under the filter, or stay off host-network
 * nodes. Custom resources take merge patches alone, which replace lists whole; all other kinds take
 * a strategic merge patch, which names only the changes.
 */
export function patchOf(object: JsonObject, options: PatchOptions): PlannedPatch | undefined {
  const found = templateIn(object)
  if (found === undefined) return undefined
  const { path, workload } = found
  const { group } = parseApiVersion(textAt(object, 'apiVersion'))
  const type = group.includes('.') ? 'merge' : 'strategic'
  const template = objectAt(object, ...path)
  const podSpec =
    options.intent === 'keep-off'
      ? { affinity: affinityKeptOff(template) ?? {} }
      : onHostNetwork(objectAt(template, 'spec'), selectorOf(object, path, workload), {
          ...options,
          type,
        })
  const strategy = strategyOf(object, found, options)
  let body: JsonObject = withAt({}, [...path, 'spec'], podSpec)
  if (strategy) body = withAt(body, [...path.slice(0, -1), strategy.member], strategy.value)
  const after =
    type === 'merge'
      ? mergePatch(object, body)
      : strategicMergePatch(mergeSchemaOf({ group, kind: textAt(object, 'kind') }), object, body)
  return { type, body, after }
}

/** Of the pods of a workload whose rollout puts a new pod anywhere; `undefined` for others. */
const selectorOf = (
  object: JsonObject,
  path: readonly string[],
  workload: string,
): Json | undefined =>
  workload === 'Deployment' || workload === 'StatefulSet'
    ? (valueAt(object, ...path.slice(0, -1), 'selector') ?? {
        matchLabels: objectAt(object, ...path, 'metadata', 'labels'),
      })
    : undefined

/**
 * The members of a pod's spec that put it on the host's network. The scheduler does not know of the
 * ports that propagated pods hold, and could put a new pod beside an old one, where it crashes for
 * as long as the rollout waits for it. Anti-affinity among the owner's pods prevents that, and
 * later only states that they share a port.
 */
function onHostNetwork(
  spec: JsonObject,
  selector: Json | undefined,
  { nodeSelector, type }: PatchOptions & { readonly type: 'strategic' | 'merge' },
): JsonObject {
  const lists = editedPorts(spec, type)
  const terms = listAt(spec, ...antiAffinity)
  const term = { labelSelector: selector ?? {}, topologyKey: 'kubernetes.io/hostname' }
  const isThere = terms.some((each) => JSON.stringify(each) === JSON.stringify(term))
  const members: JsonObject = {
    hostNetwork: true,
    ...lists,
    ...(Object.keys(nodeSelector).length > 0 && { nodeSelector }),
  }
  return portsTaken(spec) && selector !== undefined && !isThere
    ? withAt(members, antiAffinity, [...terms, term])
    : members
}

/** Whether the pods take ports of their node. */
const portsTaken = (spec: JsonObject): boolean =>
  podsOf({
    kind: 'Pod',
    spec: { ...spec, ...editedPorts(spec, 'merge'), hostNetwork: true },
  }).some((pod) => portsOf(pod).length > 0)

interface Strategy {
  readonly member: string
  readonly value: JsonObject
}

/**
 * The update strategy under which a rollout of pods with ports can end: no pod is made before an
 * old one is gone, as each node has the port once. A StatefulSet is rolled out whole. Where one at
 * a time is to be replaced, no rollout may have more of them away, whatever else it needs.
 */
function strategyOf(
  object: JsonObject,
  found: Template,
  { intent, oneAtATime }: PatchOptions,
): Strategy | undefined {
  const { path, workload } = found
  const { member, rolling } = rolloutOf(object, found)
  const most = mostAway(object, found)
  const isCapped = oneAtATime && most !== undefined && most > 1
  const cap: JsonObject = isCapped ? { maxUnavailable: 1 } : {}
  const given = rolling['maxUnavailable']
  const isFreed =
    intent === 'host-network' &&
    most !== undefined &&
    (workload === 'Deployment' || (workload === 'DaemonSet' && !isNothing(rolling['maxSurge']))) &&
    portsTaken(objectAt(object, ...path, 'spec'))
  if (isFreed) {
    const keeps = !oneAtATime && given !== undefined && most >= 1
    const rollingUpdate = { maxSurge: 0, maxUnavailable: keeps ? given : 1 }
    return { member, value: { type: 'RollingUpdate', rollingUpdate } }
  }
  const isPartial = workload === 'StatefulSet' && Number(rolling['partition'] ?? 0) > 0
  const rollingUpdate: JsonObject = { ...(isPartial && { partition: 0 }), ...cap }
  return isPartial || isCapped ? { member, value: { rollingUpdate } } : undefined
}

/** How a workload replaces its pods: which member of its spec says so, and what that says. */
function rolloutOf(object: JsonObject, { path, workload }: Template) {
  const member = workload === 'Deployment' ? 'strategy' : 'updateStrategy'
  const around = objectAt(object, ...path.slice(0, -1))
  const type = textAt(around, member, 'type') || 'RollingUpdate'
  return { around, member, type, rolling: objectAt(around, member, 'rollingUpdate') }
}

/**
 * How many pods the rollout of a workload may have away at a time, of a YurtAppSet in each of its
 * pools; `undefined` for others than rolling updates. Percents are rounded down, but those of a
 * DaemonSet up, and of nodes that its spec does not count.
 */
export function mostAway(object: JsonObject, found: Template): number | undefined {
  const { around, type, rolling } = rolloutOf(object, found)
  const { workload } = found
  if (!['Deployment', 'DaemonSet', 'StatefulSet'].includes(workload) || type !== 'RollingUpdate')
    return undefined
  const share = rolling['maxUnavailable'] ?? (workload === 'Deployment' ? '25%' : 1)
  if (typeof share === 'number') return share
  const percent = Number(/^(\d+)%$/.exec(typeof share === 'string' ? share : '')?.[1] ?? 0)
  if (percent === 0) return 0
  if (workload === 'DaemonSet') return Infinity
  const tweaks = listAt(object, 'spec', 'workload', 'workloadTweaks')
  const replicas = [around, ...tweaks.map((tweak) => objectAt(tweak, 'tweaks'))].map((each) =>
    Number(each['replicas'] ?? 1),
  )
  return Math.floor((percent * Math.max(...replicas)) / 100)
}

const isNothing = (share: Json | undefined): boolean =>
  share === undefined || share === 0 || share === '0' || share === '0%'
