import { everyone, hubIdentity, nodeIdentity } from '../../../api/request/identity.ts'
import { qualifiedName, type NamedObject } from '../named-object.ts'
import { nameKey, textInScope, type CollectionAddress, type ScopeKey } from './address.ts'
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
  // Filters of pods and endpoints wait for them.
  'apps.openyurt.io/nodepools',
  'apps.openyurt.io/nodebuckets',
])

const resourceOf = ([, , group, , resource]: ScopeKey): string => `${group}/${resource}`

/** Discovery, which programs read first. OpenAPI is for people. */
const isNeededDocument = ([identity, path]: DocumentMark): boolean =>
  identity === nodeIdentity && /^\/(api|apis|version)([/?]|$)/.test(path)

/** What can be evicted at once: a collection, an object's record or a document. */
interface Candidate {
  /** Who may have it. */
  readonly readers: ReadonlySet<string>
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

/** About `bytes` of what was confirmed least recently: of what `reader` may have, from it alone. */
export function leastRecent(state: State, bytes: number, reader?: string): Evicted | undefined {
  const mayGo = ({ isNeeded, readers }: Candidate): boolean =>
    reader === undefined ? !isNeeded : readers.has(reader)
  const evicted = oldestOf([...candidatesIn(state)].filter(mayGo), bytes, Infinity)
  if (!evicted || reader === undefined) return evicted
  return { ...evicted, record: takenFrom(reader, evicted.record) }
}

/** What is kept for all callers stays for the others. */
function takenFrom(reader: string, { collections, objects, documents }: EvictRecord): EvictRecord {
  const isOwn = ([owner]: ScopeKey): boolean => owner !== everyone
  const texts = [
    ...collections.map((of) => [of.scope, textInScope(of)] as const),
    ...objects.map(([scope, namespace, name]) => [scope, nameKey({ namespace, name })] as const),
  ]
  return {
    kind: 'evict',
    collections: collections.filter(({ scope }) => isOwn(scope)),
    objects: objects.filter(([scope]) => isOwn(scope)),
    documents,
    withdrawn: texts
      .filter(([scope]) => !isOwn(scope))
      .map(([scope, to]) => [scope, to, reader] as const),
  }
}

/** All that may have anything. */
export const readersIn = (state: State): ReadonlySet<string> =>
  new Set([...candidatesIn(state)].flatMap(({ readers }) => [...readers]))

/** Few at a time: a client may still watch the latest. */
const mostGone = 25

/**
 * What the node's pods referred to and do not any more; `referenced` has the names of what they
 * refer to, as `qualifiedName` forms them.
 */
export function unreferenced(state: State, referenced: ReadonlySet<string>): Evicted | undefined {
  const gone = [...candidatesIn(state)].filter(
    ({ ofPod }) => ofPod !== undefined && !referenced.has(ofPod),
  )
  return oldestOf(gone, Infinity, mostGone)
}

function* candidatesIn(state: State): Iterable<Candidate> {
  for (const { key, collections, records } of state.scopes.values()) {
    for (const each of collections.values()) {
      const { address, seenAt: at, weight: bytes, members, holders } = each
      const { namespace, labelSelector, fieldSelector } = address
      const name = labelSelector === '' && /^metadata\.name=([^,]*)$/.exec(fieldSelector)?.[1]
      const named = name ? { namespace, name } : undefined
      const use = useOf(key, holders, named)
      yield { ...use, at, bytes, count: members.size, collection: address }
    }
    for (const record of records.values()) {
      const { namespace, name } = record.held
      const use = useOf(key, record.holders, { namespace, name })
      const [at, bytes] = [record.confirmedAt, recordWeight(record)]
      yield { ...use, at, bytes, count: 1, object: [key, namespace, name] }
    }
  }
  for (const { document, body, confirmedAt: at } of state.documents.values()) {
    const readers = new Set(document.slice(0, 1))
    const bytes = body.length + entryBytes
    yield { readers, isNeeded: isNeededDocument(document), at, bytes, count: 1, document }
  }
}

/**
 * `holders`: of what is kept for all callers, those that were given it. It is needed if the node
 * boots with it, or the hub itself reads it. Tables are for people.
 */
function useOf(
  key: ScopeKey,
  holders: ReadonlySet<string>,
  named: Omit<NamedObject, 'gvr'> | undefined,
): Pick<Candidate, 'readers' | 'isNeeded' | 'ofPod'> {
  const [owner, representation, group, version, resource] = key
  const readers = owner === everyone ? holders : new Set([owner])
  const isFor = (who: string): boolean => readers.has(who)
  const isForBoot = bootResources.has(resourceOf(key)) && !representation.includes(';table')
  const isOfPod = podResources.has(resourceOf(key)) && isFor(nodeIdentity) && !isFor(hubIdentity)
  return {
    readers,
    isNeeded: isFor(hubIdentity) || (isFor(nodeIdentity) && isForBoot),
    ofPod:
      isOfPod && named ? qualifiedName({ gvr: { group, version, resource }, ...named }) : undefined,
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
