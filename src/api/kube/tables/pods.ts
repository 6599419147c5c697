import type { Json, JsonObject } from '../json.ts'
import { listAt, optionalObjectAt, textAt, valueAt } from '../json-at.ts'
import { ageOf } from './age.ts'
import { isConditionTrue } from '../conditions.ts'
import { hasEnded } from '../pod.ts'
import { ageColumn, column, nameColumn, none, textOr, wide } from './column.ts'

// As kubernetes pkg/printers/internalversion/printers.go shows a pod.

/** What a row says of the containers of a pod. */
interface PodSummary {
  readonly ready: number
  readonly total: number
  readonly status: string
  readonly restarts: number
  /** When a container last ended to be restarted; '' for never. */
  readonly restartedAt: string
}

/** Restarts of containers, and the time of the last one. */
class Restarts {
  count = 0
  last = ''

  add(status: Json): void {
    this.count += numberIn(status, 'restartCount')
    const at = textAt(status, 'lastState', 'terminated', 'finishedAt')
    if (at > this.last) this.last = at
  }
}

const numberIn = (value: Json, ...path: string[]): number => Number(valueAt(value, ...path) ?? 0)

function summaryOf(pod: JsonObject): PodSummary {
  const inits = initSummary(pod)
  const isPastInit = inits.reason === undefined || isConditionTrue(pod, 'Initialized')
  const restarts = isPastInit ? inits.sidecarRestarts : inits.restarts
  let status = inits.reason ?? ownReason(pod)
  let ready = inits.ready
  if (isPastInit) {
    const main = containerSummary(pod, restarts)
    status = main.reason ?? status
    ready += main.ready
    if (status === 'Completed') status = completedReason(pod, main)
  }
  return {
    ready,
    total: listAt(pod, 'spec', 'containers').length + sidecarsOf(pod).size,
    status: deletionReason(pod) ?? status,
    restarts: restarts.count,
    restartedAt: restarts.last,
  }
}

function ownReason(pod: JsonObject): string {
  const isGated = listAt(pod, 'status', 'conditions').some(
    (each) => textAt(each, 'type') === 'PodScheduled' && textAt(each, 'reason') === gated,
  )
  return isGated ? gated : textAt(pod, 'status', 'reason') || textAt(pod, 'status', 'phase')
}

const gated = 'SchedulingGated'

/** The names of init containers that go on beside the others. */
const sidecarsOf = (pod: JsonObject): ReadonlySet<string> =>
  new Set(
    listAt(pod, 'spec', 'initContainers')
      .filter((each) => textAt(each, 'restartPolicy') === 'Always')
      .map((each) => textAt(each, 'name')),
  )

interface InitSummary {
  readonly restarts: Restarts
  readonly sidecarRestarts: Restarts
  readonly ready: number
  /** `undefined`: initialization is over. */
  readonly reason: string | undefined
}

function initSummary(pod: JsonObject): InitSummary {
  const sidecars = sidecarsOf(pod)
  const [restarts, sidecarRestarts] = [new Restarts(), new Restarts()]
  let ready = 0
  for (const [at, status] of listAt(pod, 'status', 'initContainerStatuses').entries()) {
    const isSidecar = sidecars.has(textAt(status, 'name'))
    restarts.add(status)
    if (isSidecar) sidecarRestarts.add(status)
    const ended = optionalObjectAt(status, 'state', 'terminated')
    if (ended && numberIn(ended, 'exitCode') === 0) continue
    if (isSidecar && valueAt(status, 'started') === true) {
      if (valueAt(status, 'ready') === true) ready += 1
      continue
    }
    const waiting = textAt(status, 'state', 'waiting', 'reason')
    const of = listAt(pod, 'spec', 'initContainers').length
    const reason = ended
      ? endReason(ended)
      : waiting === '' || waiting === 'PodInitializing'
        ? `${at}/${of}`
        : waiting
    return { restarts, sidecarRestarts, ready, reason: `Init:${reason}` }
  }
  return { restarts, sidecarRestarts, ready, reason: undefined }
}

function endReason(ended: JsonObject): string {
  const signal = numberIn(ended, 'signal')
  const code = numberIn(ended, 'exitCode')
  return textAt(ended, 'reason') || (signal === 0 ? `ExitCode:${code}` : `Signal:${signal}`)
}

interface ContainerSummary {
  readonly ready: number
  /** That of the first container that has one. */
  readonly reason: string | undefined
  /** That of the first container that failed. */
  readonly failure: string | undefined
}

function containerSummary(pod: JsonObject, restarts: Restarts): ContainerSummary {
  let ready = 0
  let reason: string | undefined
  let failure: string | undefined
  for (const status of listAt(pod, 'status', 'containerStatuses').toReversed()) {
    restarts.add(status)
    const waiting = textAt(status, 'state', 'waiting', 'reason')
    const ended = optionalObjectAt(status, 'state', 'terminated')
    if (waiting !== '') reason = waiting
    else if (ended) {
      reason = endReason(ended)
      if (numberIn(ended, 'exitCode') !== 0) failure = reason
    } else if (valueAt(status, 'ready') === true && valueAt(status, 'state', 'running')) ready += 1
  }
  return { ready, reason, failure }
}

/** The status where a container has completed: what the others do. */
function completedReason(pod: JsonObject, { ready, failure }: ContainerSummary): string {
  if (ready > 0 && isConditionTrue(pod, 'Ready')) return 'Running'
  return failure ?? (ready > 0 ? 'NotReady' : 'Completed')
}

/** The status of a pod that is being deleted. */
function deletionReason(pod: JsonObject): string | undefined {
  if (textAt(pod, 'metadata', 'deletionTimestamp') === '') return undefined
  if (textAt(pod, 'status', 'reason') === 'NodeLost') return 'Unknown'
  return hasEnded(pod) ? undefined : 'Terminating'
}

function restartsText(pod: JsonObject): Json {
  const { restarts, restartedAt } = summaryOf(pod)
  return restarts === 0 || restartedAt === ''
    ? String(restarts)
    : `${restarts} (${ageOf(restartedAt)} ago)`
}

function gates(pod: JsonObject): Json {
  const all = listAt(pod, 'spec', 'readinessGates')
  if (all.length === 0) return none
  const met = all.filter((gate) => isConditionTrue(pod, textAt(gate, 'conditionType')))
  return `${met.length}/${all.length}`
}

const firstIp = (pod: JsonObject): Json =>
  textAt(listAt(pod, 'status', 'podIPs')[0], 'ip') || textAt(pod, 'status', 'podIP') || none

export const podColumns = [
  nameColumn,
  column('Ready', (pod) => {
    const { ready, total } = summaryOf(pod)
    return `${ready}/${total}`
  }),
  column('Status', (pod) => summaryOf(pod).status),
  column('Restarts', restartsText),
  ageColumn,
  wide('IP', firstIp),
  wide('Node', textOr(none, 'spec', 'nodeName')),
  wide('Nominated Node', textOr(none, 'status', 'nominatedNodeName')),
  wide('Readiness Gates', gates),
]
