import { now } from '../../../base/clock.ts'
import { hubIdentity, nodeIdentity } from '../../../api/request/identity.ts'
import { documentResource, isDiscovery } from '../document.ts'
import { tokenResource } from '../token-name.ts'
import type { Part } from './address.ts'
import type { EvictRecord } from './record.ts'
import type { Collection } from './scope.ts'
import type { State } from './state.ts'

/**
 * Objects that a kubelet reads one by one because a pod refers to them, so that they stay behind
 * when the pod is gone. What a pod of the node refers to is confirmed again and again, and read
 * anew where it is missing (`Refresher`).
 */
const podResources = new Set([
  '/secrets',
  '/configmaps',
  '/serviceaccounts',
  '/persistentvolumeclaims',
  '/persistentvolumes',
  'resource.k8s.io/resourceclaims',
  `/${tokenResource.resource}`,
])

/**
 * A kubelet renews the tokens of its pods each day at least: one that it has not renewed is of a
 * pod that is gone. Each pod leaves some behind, under names of its own.
 */
const staleTokenMs = 7 * 24 * 3_600_000

/** The resources that a kubelet needs to run its pods again after a boot without a link. */
const bootResources = new Set([
  ...podResources,
  '/nodes',
  '/pods',
  '/services',
  'certificates.k8s.io/clustertrustbundles',
  'coordination.k8s.io/leases',
  'node.k8s.io/runtimeclasses',
  'storage.k8s.io/csidrivers',
  'storage.k8s.io/csinodes',
  'storage.k8s.io/volumeattachments',
  // Filters of pods and endpoints wait for them.
  'apps.openyurt.io/nodepools',
  'apps.openyurt.io/nodebuckets',
])

/** What can be evicted at once: a collection, or an object's record. */
type Candidate = readonly [part: Part, of: Collection]

/** `old`: the node does not boot with it; `gone`: mostly of pods that are gone. */
export type EvictedKind = 'old' | 'gone'

export interface Evicted {
  readonly kind: EvictedKind
  readonly record: EvictRecord
  readonly count: number
}

/**
 * About `bytes` of what was confirmed least recently, and the node does not need: of the caller who
 * may have most, and first of what no other may have, so that none can fill the store at the cost
 * of others; at last what pods refer to.
 */
export function leastNeeded(state: State, bytes: number): Evicted | undefined {
  const candidates: Candidate[] = []
  for (const scope of state.scopes.values())
    for (const [text, of] of scope.parts()) candidates.push([[scope.key, text], of])
  const unused = candidates.filter(([, of]) => useOf(of) === undefined)
  if (unused.length > 0) return oldestOf('old', ofHeaviest(unused), bytes)
  return oldestOf(
    'gone',
    candidates.filter(([, of]) => useOf(of) === 'gone'),
    bytes,
  )
}

/** In the order in which they may go. */
function ofHeaviest(candidates: readonly Candidate[]): readonly Candidate[] {
  const weights = new Map<string, number>()
  for (const [, { holders, weight }] of candidates)
    for (const holder of holders) weights.set(holder, (weights.get(holder) ?? 0) + weight)
  const [heaviest] = [...weights].reduce((a, b) => (b[1] > a[1] ? b : a), ['', 0])
  const own = candidates.filter(([, { holders }]) => holders.size === 0 || holders.has(heaviest))
  const unshared = own.filter(([, { holders }]) => holders.size <= 1)
  return unshared.length > 0 ? unshared : own
}

function oldestOf(
  kind: EvictedKind,
  from: readonly Candidate[],
  bytes: number,
): Evicted | undefined {
  const parts: Part[] = []
  let [sum, count] = [0, 0]
  for (const [part, { weight, members }] of from.toSorted(([, a], [, b]) => a.seenAt - b.seenAt)) {
    if (sum >= bytes) break
    parts.push(part)
    sum += weight
    count += members.size
  }
  return parts.length > 0 ? { kind, record: { kind: 'evict', parts }, count } : undefined
}

/** Whether the node boots with it, or the hub itself reads it; `gone`: perhaps it did. */
function useOf({ key, holders, seenAt }: Collection): 'needed' | 'gone' | undefined {
  if (holders.has(hubIdentity)) return 'needed'
  const { gvr, fieldSelector } = key
  const { group, resource } = gvr
  const [, name] = /^metadata\.name=(.*)$/s.exec(fieldSelector) ?? []
  if (!holders.has(nodeIdentity)) return undefined
  if (resource === documentResource.resource)
    return name !== undefined && isDiscovery(name) ? 'needed' : undefined
  if (resource === tokenResource.resource && now() - seenAt > staleTokenMs) return undefined
  const of = `${group}/${resource}`
  if (!bootResources.has(of)) return undefined
  return podResources.has(of) && name !== undefined ? 'gone' : 'needed'
}
