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
  const strategy = strategyOf(object, found, options.intent)
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

/**
 * The update strategy under which a rollout of pods with ports can end: no pod is made before an
 * old one is gone, as each node has the port once.
 */
function strategyOf(
  object: JsonObject,
  { path, workload }: Template,
  intent: Intent,
): { readonly member: string; readonly value: JsonObject } | undefined {
  const member = workload === 'Deployment' ? 'strategy' : 'updateStrategy'
  const around = objectAt(object, ...path.slice(0, -1))
  const { maxSurge, maxUnavailable } = objectAt(around, member, 'rollingUpdate')
  const surges = workload === 'Deployment' || (workload === 'DaemonSet' && !isNothing(maxSurge))
  const isRolling = (textAt(around, member, 'type') || 'RollingUpdate') === 'RollingUpdate'
  if (
    intent === 'keep-off' ||
    !surges ||
    !isRolling ||
    !portsTaken(objectAt(around, 'template', 'spec'))
  )
    return undefined
  const rollingUpdate = {
    maxSurge: 0,
    maxUnavailable: isNothing(maxUnavailable) ? 1 : (maxUnavailable ?? 1),
  }
  return { member, value: { type: 'RollingUpdate', rollingUpdate } }
}

const isNothing = (share: Json | undefined): boolean =>
  share === undefined || share === 0 || share === '0' || share === '0%'
