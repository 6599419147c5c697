import type { JsonObject } from '../../api/kube/json.ts'
import type { Cursor } from '../../api/codec/cursor.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { stringAt } from './references.ts'
import type { BootVerdict } from './verdict.ts'

/** The node condition that shows the boot verdict in the cluster. */
const conditionType = 'OfflineReady'

/** A condition without its times. */
export interface ConditionState {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

/** A condition of a node; times are in milliseconds since the epoch. */
export interface Condition extends ConditionState {
  readonly lastHeartbeat: number
  readonly lastTransition: number
}

/** More names would be cut off by programs that show conditions. */
const mostNames = 5

/**
 * The boot verdict as a condition. Its message has no times, which would change it at every
 * verdict.
 */
export function conditionState({ ready, node, pods }: BootVerdict): ConditionState {
  if (ready) {
    const message = `the node and its pods (${pods.length}) would come back without a link`
    return { status: 'True', reason: 'EverythingKept', message }
  }
  if (!node.ready) {
    const names = [...new Set(node.problems.map(({ resource }) => resource))]
    const message = `the node would not come back without a link: ${listed(names)}`
    return { status: 'False', reason: 'NodeNotKept', message }
  }
  const names = pods
    .filter((pod) => !pod.ready)
    .map(({ namespace, name }) => `${namespace}/${name}`)
  const message = `${names.length} of ${pods.length} pods would not come back without a link: ${listed(names)}`
  return { status: 'False', reason: 'PodsNotKept', message }
}

function listed(names: readonly string[]): string {
  const more = names.length - mostNames
  const shown = names.slice(0, mostNames).join(', ')
  return more > 0 ? `${shown} and ${more} more` : shown
}

/** The condition of a node; `undefined` where it has none, or none that can be read. */
export function conditionIn(node: Cursor): Condition | undefined {
  try {
    return find(node)
  } catch (cause) {
    if (!(cause instanceof MalformedBody)) throw cause
    return undefined
  }
}

function find(node: Cursor): Condition | undefined {
  const list = ['status', 'conditions']
  for (let at = 0; at < node.count(list); at++) {
    const field = (name: string): string => stringAt(node, [...list, at, name])
    if (field('type') !== conditionType) continue
    const status = field('status')
    if (status !== 'True' && status !== 'False') return undefined
    return {
      status,
      reason: field('reason'),
      message: field('message'),
      lastHeartbeat: Date.parse(field('lastHeartbeatTime')) || 0,
      lastTransition: Date.parse(field('lastTransitionTime')) || 0,
    }
  }
  return undefined
}

/**
 * How long an unchanged condition stays without a heartbeat: as long as a kubelet's whose status
 * does not change.
 */
const heartbeatMs = 5 * 60_000

/** The condition to write now; `undefined`: the node's is up to date and recent enough. */
export function nextCondition(
  saying: ConditionState,
  before: Condition | undefined,
  now: number,
): Condition | undefined {
  const same =
    before?.status === saying.status &&
    before.reason === saying.reason &&
    before.message === saying.message
  // A heartbeat in the future is from before the clock was set back.
  if (same && Math.abs(now - before.lastHeartbeat) < heartbeatMs) return undefined
  const lastTransition = before?.status === saying.status ? before.lastTransition : now
  return { ...saying, lastHeartbeat: now, lastTransition }
}

/**
 * A strategic merge patch of a node's status. Conditions are merged by type: the kubelet's stay as
 * they are, and the kubelet's patches leave this one as it is.
 */
export const conditionPatch = (condition: Condition): JsonObject => ({
  status: {
    conditions: [
      {
        type: conditionType,
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
        lastHeartbeatTime: time(condition.lastHeartbeat),
        lastTransitionTime: time(condition.lastTransition),
      },
    ],
  },
})

/** In whole seconds, as the API keeps it. */
const time = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
