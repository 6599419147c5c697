import { elapsed, sleep } from '../../base/clock.ts'
import type { JsonObject } from '../../api/kube/json.ts'
import { textAt, valueAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'
import { mayPass } from '../api/failure.ts'
import { rolloutOf, type Rollout } from '../components/rollout.ts'
import { controllerOf } from './cluster-state.ts'
import { makesWorkloads, type Owner } from './owner.ts'
import { templateIn } from './patch.ts'

export interface ApplyOptions {
  /** The time limit of each rollout. */
  readonly settleMs: number
  readonly say: (line: string) => void
}

/** How a rollout ended, and its effect on the service. */
export interface Settled {
  readonly outcome: 'settled' | 'failed' | 'not in time' | 'gone'
  readonly ms: number
  /** The fewest available pods that were seen, of so many wanted. */
  readonly fewest: number
  readonly wanted: number
  /** How long no pod was available, as far as a look each second shows. */
  readonly withoutMs: number
}

/** A Deployment, DaemonSet or StatefulSet that rolls an owner's template out. */
export interface RollingWorkload {
  readonly kind: string
  readonly path: string
  readonly object: JsonObject
}

const pollMs = 1_000

export const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`

/**
 * Waits at most `withinMs` until the pods of an owner are of its last template and available. While
 * an API server cannot be reached, it repeats the request within that time. Until then `meanwhile`
 * is called at each look, with the workloads that have the last template.
 */
export async function settle(
  api: ApiServer,
  owner: Owner,
  withinMs: number,
  meanwhile?: (workloads: readonly RollingWorkload[]) => Promise<void>,
): Promise<Settled> {
  const began = elapsed()
  let fewest = Infinity
  let withoutMs = 0
  let wanted = 0
  let last = began
  const ended = (outcome: Settled['outcome']): Settled => ({
    outcome,
    ms: elapsed() - began,
    fewest: Number.isFinite(fewest) ? fewest : 0,
    wanted,
    withoutMs,
  })
  for (;;) {
    const rollout = await rolloutNow(api, owner, meanwhile)
    if (rollout === 'gone') return ended('gone')
    if (rollout !== 'unreachable') {
      wanted = rollout.wanted
      fewest = Math.min(fewest, rollout.available)
      if (rollout.available === 0 && wanted > 0) withoutMs += elapsed() - last
      if (rollout.state !== 'progressing') return ended(rollout.state)
    }
    last = elapsed()
    if (last - began > withinMs) return ended('not in time')
    await sleep(pollMs)
  }
}

async function rolloutNow(
  api: ApiServer,
  owner: Owner,
  meanwhile: Parameters<typeof settle>[3],
): Promise<Rollout | 'gone' | 'unreachable'> {
  const { kind, path = '' } = owner
  try {
    const object = await api.get(path)
    if (object === undefined) return 'gone'
    if (kind === 'CronJob') return { state: 'settled', available: 0, wanted: 0 }
    const { rollout, workloads } = makesWorkloads(owner)
      ? combined(object, await childrenOf(api, owner))
      : { rollout: rolloutOf(kind, object), workloads: [{ kind, path, object }] }
    if (rollout.state === 'progressing') await meanwhile?.(workloads)
    return rollout
  } catch (cause) {
    if (!mayPass(cause)) throw cause
    return 'unreachable'
  }
}

/** The workloads that OpenYurt's controller makes for a YurtAppSet, one for each pool. */
async function childrenOf(
  api: ApiServer,
  { namespace, uid }: Owner,
): Promise<readonly RollingWorkload[]> {
  const found: RollingWorkload[] = []
  for (const kind of ['Deployment', 'StatefulSet']) {
    const all = `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/${kind.toLowerCase()}s`
    for await (const object of api.list(all)) {
      const path = `${all}/${encodeURIComponent(textAt(object, 'metadata', 'name'))}`
      if (controllerOf(object)?.uid === uid) found.push({ kind, path, object })
    }
  }
  return found
}

/** Settled when the controller has written the template into every child, and all have settled. */
function combined(owner: JsonObject, children: readonly RollingWorkload[]) {
  const rollouts = children.map(({ kind, object }) => rolloutOf(kind, object))
  const sum = (of: (rollout: Rollout) => number): number =>
    rollouts.reduce((total, each) => total + of(each), 0)
  const isWritten = hasLastTemplate(owner, children)
  const state =
    isWritten && rollouts.some((each) => each.state === 'failed')
      ? 'failed'
      : isWritten && rollouts.every((each) => each.state === 'settled')
        ? 'settled'
        : 'progressing'
  const rollout: Rollout = {
    state,
    available: sum(({ available }) => available),
    wanted: sum(({ wanted }) => wanted),
  }
  return { rollout, workloads: isWritten ? children : [] }
}

/** On objects that OpenYurt's controller makes: the revision of their owner. */
const revisionLabel = 'apps.openyurt.io/controller-revision-hash'

/**
 * The status shows which generation OpenYurt's controller has worked on. Up to 1.4 that may be so
 * although a child could not be written.
 */
function hasLastTemplate(owner: JsonObject, children: readonly RollingWorkload[]): boolean {
  const generation = Number(valueAt(owner, 'metadata', 'generation') ?? 0)
  const observed = Number(valueAt(owner, 'status', 'observedGeneration') ?? 0)
  const revisions = new Set(
    children.map(({ object }) => textAt(object, 'metadata', 'labels', revisionLabel)),
  )
  const path = templateIn(owner)?.path ?? []
  const isRequested = valueAt(owner, ...path, 'spec', 'hostNetwork') === true
  return (
    observed >= generation &&
    revisions.size <= 1 &&
    children.every(({ object }) => isOnHostNetwork(object) === isRequested)
  )
}

const isOnHostNetwork = (object: JsonObject): boolean =>
  valueAt(object, 'spec', 'template', 'spec', 'hostNetwork') === true
