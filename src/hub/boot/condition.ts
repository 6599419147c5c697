import { hubReportAnnotation, offlineReadyCondition } from '../../api/kube/hub-report.ts'
import type { JsonObject } from '../../api/kube/json.ts'
import type { Cursor } from '../../api/codec/cursor.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { stringAt } from './references.ts'
import type { BootVerdict } from './verdict.ts'

/** A condition without its times. */
interface ConditionState {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

/** A condition of a node; times are in milliseconds since the epoch. */
interface Condition extends ConditionState {
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

/** What the hub writes of itself to its Node. */
export interface NodeReport {
  readonly condition: Condition
  /** The annotation. */
  readonly report: string
}

/** What a node has; `undefined` where it has no condition, or none that can be read. */
export function reportIn(node: Cursor): NodeReport | undefined {
  try {
    const condition = find(node)
    return condition && { condition, report: node.annotation(hubReportAnnotation) ?? '' }
  } catch (cause) {
    if (!(cause instanceof MalformedBody)) throw cause
    return undefined
  }
}

function find(node: Cursor): Condition | undefined {
  const list = ['status', 'conditions']
  for (let at = 0; at < node.count(list); at++) {
    const field = (name: string): string => stringAt(node, [...list, at, name])
    if (field('type') !== offlineReadyCondition) continue
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
 * does not change. The annotation alone is not worth a write more often than every two minutes: a
 * link that comes and goes changes it each time.
 */
const heartbeatMs = 5 * 60_000
const reportMs = 2 * 60_000

/** What to write now; `undefined`: the node's is up to date and recent enough. */
export function nextReport(
  saying: ConditionState,
  report: string,
  written: NodeReport | undefined,
  now: number,
): NodeReport | undefined {
  const before = written?.condition
  const same =
    before?.status === saying.status &&
    before.reason === saying.reason &&
    before.message === saying.message
  const patienceMs = report === written?.report ? heartbeatMs : reportMs
  // A heartbeat in the future is from before the clock was set back.
  if (same && Math.abs(now - before.lastHeartbeat) < patienceMs) return undefined
  const lastTransition = before?.status === saying.status ? before.lastTransition : now
  return { condition: { ...saying, lastHeartbeat: now, lastTransition }, report }
}

/**
 * A strategic merge patch of a node's status, which takes annotations too. Conditions are merged by
 * type: the kubelet's stay as they are, and the kubelet's patches leave this one as it is.
 */
export const reportPatch = ({ condition, report }: NodeReport): JsonObject => ({
  metadata: { annotations: { [hubReportAnnotation]: report } },
  status: {
    conditions: [
      {
        type: offlineReadyCondition,
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
