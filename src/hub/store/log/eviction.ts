import { now } from '../../../base/clock.ts'
import { hubIdentity, nodeIdentity } from '../../../api/request/identity.ts'
import { documentResource } from '../document.ts'
import { tokenResource } from '../token-name.ts'
import type { Part } from './address.ts'
import type { EvictRecord } from './record.ts'
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

/** Discovery, which programs read first. OpenAPI is for people. */
const isDiscovery = (path: string): boolean => /^\/(api|apis|version)([/?]|$)/.test(path)

/** What can be evicted at once: a collection, or an object's record. */
interface Candidate {
  readonly part: Part
  /** Who may have it. */
  readonly readers: ReadonlySet<string>
  /** When it was confirmed last. */
  readonly at: number
  readonly bytes: number
  readonly objects: number
  /** Of an object, or a collection of one. */
  readonly name?: string | undefined
}

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
  const candidates = [...candidatesIn(state)]
  const unused = candidates.filter((each) => useOf(each) === undefined)
  if (unused.length > 0) return oldestOf('old', ofHeaviest(unused), bytes)
  return oldestOf(
    'gone',
    candidates.filter((each) => useOf(each) === 'gone'),
    bytes,
  )
}

/** In the order in which they may go. */
function ofHeaviest(candidates: readonly Candidate[]): readonly Candidate[] {
  const weights = new Map<string, number>()
  for (const each of candidates)
    for (const reader of each.readers) weights.set(reader, (weights.get(reader) ?? 0) + each.bytes)
  const [heaviest] = [...weights].reduce((a, b) => (b[1] > a[1] ? b : a), ['', 0])
  const own = candidates.filter(({ readers }) => readers.size === 0 || readers.has(heaviest))
  const unshared = own.filter(({ readers }) => readers.size <= 1)
  return unshared.length > 0 ? unshared : own
}

function oldestOf(
  kind: EvictedKind,
  from: readonly Candidate[],
  bytes: number,
): Evicted | undefined {
  const chosen: Candidate[] = []
  let sum = 0
  for (const each of from.toSorted((a, b) => a.at - b.at)) {
    if (sum >= bytes) break
    chosen.push(each)
    sum += each.bytes
  }
  if (chosen.length === 0) return undefined
  return {
    kind,
    record: { kind: 'evict', parts: chosen.map(({ part }) => part) },
    count: chosen.reduce((all, { objects }) => all + objects, 0),
  }
}

function* candidatesIn(state: State): Iterable<Candidate> {
  for (const scope of state.scopes.values())
    for (const [text, part] of scope.parts()) {
      const { key, seenAt: at, weight: bytes, members, holders: readers } = part
      const [, name] = /^metadata\.name=(.*)$/s.exec(key.fieldSelector) ?? []
      yield { part: [scope.key, text], readers, at, bytes, objects: members.size, name }
    }
}

/**
 * Whether the node boots with it, or the hub itself reads it; `gone`: perhaps it did. Tables are
 * for people.
 */
function useOf({ part: [key], readers, name, at }: Candidate): 'needed' | 'gone' | undefined {
  if (readers.has(hubIdentity)) return 'needed'
  const { partition, gvr } = key
  const { group, resource } = gvr
  if (!readers.has(nodeIdentity) || partition.representation.includes(';table')) return undefined
  if (resource === documentResource.resource)
    return name !== undefined && isDiscovery(name) ? 'needed' : undefined
  if (resource === tokenResource.resource && now() - at > staleTokenMs) return undefined
  const of = `${group}/${resource}`
  if (!bootResources.has(of)) return undefined
  return podResources.has(of) && name !== undefined ? 'gone' : 'needed'
}
