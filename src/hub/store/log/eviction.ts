import { nodeIdentity, sharedIdentity } from '../../../api/request/identity.ts'
import { qualifiedName } from '../named-object.ts'
import type { CollectionAddress, ScopeKey } from './address.ts'
import type { DocumentMark, EvictRecord, NamePair } from './record.ts'
import { entryBytes, recordWeight } from './scope.ts'
import type { State } from './state.ts'

/**
 * `quota`: of a caller beyond its share; `old`: confirmed least recently, and the node does not
 * boot with it; `gone`: referred to only by pods that are gone.
 */
export type EvictedKind = 'quota' | 'old' | 'gone'

/**
 * Objects that a kubelet reads one by one because a pod refers to them, so that they stay behind
 * when the pod is gone. Not attachments: the names of those that are not of CSI are unknown here.
 */
const podResources = new Set([
  '/secrets',
  '/configmaps',
  '/serviceaccounts',
  '/persistentvolumeclaims',
  '/persistentvolumes',
  'resource.k8s.io/resourceclaims',
])

/** The resources that a kubelet needs to run its pods again after a boot without a link. */
const bootResources = new Set([
  ...podResources,
  '/nodes',
  '/pods',
  '/services',
  '/serviceaccounts/token',
  'certificates.k8s.io/clustertrustbundles',
  'coordination.k8s.io/leases',
  'node.k8s.io/runtimeclasses',
  'storage.k8s.io/csidrivers',
  'storage.k8s.io/csinodes',
  'storage.k8s.io/volumeattachments',
])

const resourceOf = ([, , group, , resource]: ScopeKey): string => `${group}/${resource}`

/**
 * Whether the node boots with what is in the scope, or the hub itself reads it. `holders`: of what
 * is kept for all callers, those that were given it. Tables are for people.
 */
const isNeeded = (key: ScopeKey, holders: ReadonlySet<string>): boolean =>
  (key[0] === sharedIdentity && holders.size === 0) ||
  ((key[0] === nodeIdentity || holders.has(nodeIdentity)) &&
    bootResources.has(resourceOf(key)) &&
    !key[1].includes(';table'))

/** Discovery, which programs read first. OpenAPI is for people. */
const isNeededDocument = ([identity, path]: DocumentMark): boolean =>
  identity === nodeIdentity && /^\/(api|apis|version)([/?]|$)/.test(path)

/** What can be evicted at once: a collection, an object's record or a document. */
interface Candidate {
  readonly isNeeded: boolean
  /** When it was confirmed last. */
  readonly at: number
  readonly bytes: number
  /** Objects and documents. */
  readonly count: number
  /** Names it, if a kubelet reads it for a pod. */
  readonly ofPod?: string | undefined
  readonly collection?: CollectionAddress
  readonly object?: readonly [ScopeKey, ...NamePair]
  readonly document?: DocumentMark
}

export interface Evicted {
  readonly record: EvictRecord
  readonly count: number
}

/** About `bytes` of what was confirmed least recently, of `identity` if that is given. */
export function leastRecent(state: State, bytes: number, identity?: string): Evicted | undefined {
  const candidates = [...candidatesIn(state, identity)]
  return oldestOf(
    identity === undefined ? candidates.filter((each) => !each.isNeeded) : candidates,
    bytes,
    Infinity,
  )
}

/** Few at a time: a client may still watch the latest. */
const mostGone = 25

/**
 * What the node's pods referred to and do not any more; `referenced` has the names of what they
 * refer to, as `qualifiedName` forms them.
 */
export function unreferenced(state: State, referenced: ReadonlySet<string>): Evicted | undefined {
  const gone = [...candidatesIn(state, nodeIdentity)].filter(
    ({ ofPod }) => ofPod !== undefined && !referenced.has(ofPod),
  )
  return oldestOf(gone, Infinity, mostGone)
}

function* candidatesIn(state: State, of?: string): Iterable<Candidate> {
  for (const { key, collections, records } of state.scopes.values()) {
    if (of !== undefined && key[0] !== of) continue
    const [, , group, version, resource] = key
    const nameOf = (namespace: string, name: string): string | undefined =>
      podResources.has(resourceOf(key))
        ? qualifiedName({ gvr: { group, version, resource }, namespace, name })
        : undefined
    for (const each of collections.values()) {
      const { address, seenAt: at, weight: bytes, members, holders } = each
      const { namespace, labelSelector, fieldSelector } = address
      const only = /^metadata\.name=([^,]*)$/.exec(fieldSelector)?.[1]
      const ofPod = only === undefined || labelSelector !== '' ? undefined : nameOf(namespace, only)
      const [count, needed] = [members.size, isNeeded(key, holders)]
      yield { isNeeded: needed, at, bytes, count, ofPod, collection: address }
    }
    for (const record of records.values()) {
      const { namespace, name } = record.held
      const object = [key, namespace, name] as const
      const [at, bytes] = [record.confirmedAt, recordWeight(record)]
      const needed = isNeeded(key, record.holders)
      yield { isNeeded: needed, at, bytes, count: 1, ofPod: nameOf(namespace, name), object }
    }
  }
  for (const { document, body, confirmedAt: at } of state.documents.values()) {
    if (of !== undefined && document[0] !== of) continue
    const bytes = body.length + entryBytes
    yield { isNeeded: isNeededDocument(document), at, bytes, count: 1, document }
  }
}

function oldestOf(from: readonly Candidate[], bytes: number, most: number): Evicted | undefined {
  const chosen: Candidate[] = []
  let sum = 0
  for (const each of from.toSorted((a, b) => a.at - b.at)) {
    if (sum >= bytes || chosen.length >= most) break
    chosen.push(each)
    sum += each.bytes
  }
  if (chosen.length === 0) return undefined
  return {
    record: {
      kind: 'evict',
      collections: chosen.flatMap(({ collection }) => collection ?? []),
      objects: chosen.flatMap(({ object }) => (object ? [object] : [])),
      documents: chosen.flatMap(({ document }) => (document ? [document] : [])),
    },
    count: chosen.reduce((all, { count }) => all + count, 0),
  }
}
