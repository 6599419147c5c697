import { elapsed, sleep } from '../../base/clock.ts'
import type { JsonObject } from '../../api/kube/json.ts'
import { valueAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'
import { ApiFailure } from '../api/failure.ts'
import { rolloutOf, type Rollout } from '../components/rollout.ts'
import { controllerOf } from './cluster-state.ts'
import type { Owner } from './owner.ts'

export interface ApplyOptions {
  /** The time limit of each rollout. */
  readonly settleMs: number
  readonly say: (line: string) => void
}

/** How a rollout ended, and what its service had of it. */
export interface Settled {
  readonly outcome: 'settled' | 'failed' | 'not in time' | 'gone'
  readonly ms: number
  /** The fewest available pods that were seen, of so many wanted. */
  readonly fewest: number
  readonly wanted: number
  /** How long no pod was available, as far as a look each second shows. */
  readonly withoutMs: number
}

const pollMs = 1_000

/**
 * Waits at most `withinMs` until the pods of an owner are of its last template and available. An
 * API server that cannot be reached for a while is asked again within that time.
 */
export async function settle(api: ApiServer, owner: Owner, withinMs: number): Promise<Settled> {
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
    const rollout = await rolloutNow(api, owner)
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

async function rolloutNow(api: ApiServer, owner: Owner): Promise<Rollout | 'gone' | 'unreachable'> {
  try {
    const object = await api.get(owner.path ?? '')
    if (object === undefined) return 'gone'
    if (owner.kind === 'CronJob') return { state: 'settled', available: 0, wanted: 0 }
    return owner.kind.startsWith('Yurt')
      ? combined(object, await childrenOf(api, owner))
      : rolloutOf(owner.kind, object)
  } catch (cause) {
    if (cause instanceof ApiFailure && cause.status < 500) throw cause
    return 'unreachable'
  }
}

interface Child {
  readonly kind: string
  readonly object: JsonObject
}

/** The workloads that OpenYurt's controller makes for a YurtAppSet, one for each pool. */
async function childrenOf(api: ApiServer, { namespace, uid }: Owner): Promise<readonly Child[]> {
  const found: Child[] = []
  for (const kind of ['Deployment', 'StatefulSet']) {
    const path = `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/${kind.toLowerCase()}s`
    for await (const object of api.list(path))
      if (controllerOf(object)?.uid === uid) found.push({ kind, object })
  }
  return found
}

const isOnHostNetwork = (object: JsonObject): boolean =>
  valueAt(object, 'spec', 'template', 'spec', 'hostNetwork') === true

/** Settled when the controller has written the template into every child, and all have settled. */
function combined(owner: JsonObject, children: readonly Child[]): Rollout {
  const rollouts = children.map(({ kind, object }) => rolloutOf(kind, object))
  const sum = (of: (rollout: Rollout) => number): number =>
    rollouts.reduce((total, each) => total + of(each), 0)
  const asked = JSON.stringify(owner['spec']).includes('"hostNetwork":true')
  const written = children.every(({ object }) => isOnHostNetwork(object) === asked)
  const state = rollouts.some((each) => each.state === 'failed')
    ? 'failed'
    : written && rollouts.every((each) => each.state === 'settled')
      ? 'settled'
      : 'progressing'
  return { state, available: sum(({ available }) => available), wanted: sum((each) => each.wanted) }
}
