import { turn } from '../../base/clock.ts'
import { selectionOf } from '../../api/codec/selection.ts'
import { schemaOf } from '../../api/codec/schema/schema.ts'
import { qualifiedResource, type GVK, type GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import { namespacedName } from '../../api/kube/object.ts'
import {
  compareVersions,
  isNewer,
  newestVersion,
  resourceVersion,
} from '../../api/kube/resource-version.ts'
import { covers, selectorOfName } from '../../api/kube/selectors.ts'
import { hubIdentity, nodeIdentity } from '../../api/request/identity.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import type {
  CollectionKey,
  ObjectKey,
  ObjectStore,
  StoredCollection,
  StoredObject,
  StoredPartition,
} from '../store/store.ts'

/** The records to look through. */
export interface RecordSource {
  readonly store: ObjectStore
  /** Whose records count: what the node may read, or all. */
  readonly reach: 'node' | 'everyone'
}

/** The objects to look for among the records. */
export interface RecordQuery {
  readonly gvr: GVR
  /** Absent: all namespaces, or a cluster-scoped resource. */
  readonly namespace?: string
  readonly labelSelector: string
  readonly fieldSelector: string
}

/** The state of an object that is known from another source than the records. */
export interface KnownState {
  /** The version at which it existed. */
  readonly version: string
  /** Of a pod: the node that it is bound to; absent: not known. */
  readonly nodeName?: string
}

/** The newest recorded state of an object, without its bytes. */
export interface MergedRecord {
  readonly key: ObjectKey
  readonly gvk: GVK
  readonly encoding: Encoding
  /** Of the object. */
  readonly resourceVersion: string
  readonly confirmedVersion: string
  readonly confirmedAt: number
}

export interface MergedRecords {
  /** Ordered by namespace and name. */
  readonly records: readonly MergedRecord[]
  /**
   * The newest collection that holds all that the query selects; absent: there may be more objects.
   */
  readonly covering?: StoredCollection
  /**
   * Of the objects that were known, by `namespacedName`, those that a later record shows to be
   * deleted or not to be selected any more.
   */
  readonly contradicted: ReadonlySet<string>
}

const encodings = new Map(
  (['json', 'protobuf'] as const).map((each) => [objectRepresentation(each).key, each]),
)

type ObjectName = Pick<ObjectKey, 'namespace' | 'name'>

/** A partition that holds whole objects. */
type ObjectPartition = StoredPartition & { readonly encoding: Encoding }

function objectPartitions({ store, reach }: RecordSource, gvr: GVR): ObjectPartition[] {
  // The hub reads for itself with the node's credentials.
  const readers = [nodeIdentity, hubIdentity]
  const partitions =
    reach === 'everyone'
      ? store.partitions(gvr)
      : readers.flatMap((reader) => store.partitions(gvr, reader))
  return partitions.flatMap((each) => {
    const encoding = encodings.get(each.partition.representation)
    return encoding ? [{ ...each, encoding }] : []
  })
}

/** Reads of one turn of the event loop. */
const readsAtOnce = 64

/**
 * The newest state of each object that any of the records hold and that the query selects. An
 * object is left out if a newer collection of any caller would hold it and does not, and if its
 * bytes cannot be decoded. `known`: by `namespacedName`. `undefined` where a selector cannot be
 * decided.
 */
export async function mergedRecords(
  query: RecordQuery,
  source: RecordSource,
  known: ReadonlyMap<string, ObjectName & KnownState> = new Map(),
): Promise<MergedRecords | undefined> {
  const { gvr, namespace } = query
  const selections = new Map(
    [...encodings.values()].map((encoding) => [
      encoding,
      selectionOf(gvr, query, objectRepresentation(encoding)),
    ]),
  )
  const partitions = objectPartitions(source, gvr)
  if (partitions.some(({ encoding }) => !selections.get(encoding))) return undefined
  const names = new Map<string, ObjectName>(known)
  for (const each of partitions.flatMap((partition) => partition.names)) {
    if (namespace === undefined || each.namespace === namespace)
      names.set(namespacedName(each), each)
  }
  const records: MergedRecord[] = []
  const contradicted = new Set<string>()
  let read = 0
  for (const [key, { namespace, name }] of [...names].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const before = known.get(key)
    const newest = newestRecord({ gvr, namespace, name }, partitions, source.store, before)
    if (++read % readsAtOnce === 0) await turn()
    if (newest === undefined) continue
    if (newest === 'absent') {
      contradicted.add(key)
      continue
    }
    const { record, stored } = newest
    if (selections.get(record.encoding)?.selects(stored.gvk, record.encoding, stored.object))
      records.push(record)
    else if (before && isNewer(record.resourceVersion, before.version)) contradicted.add(key)
  }
  const [covering] = partitions
    .flatMap(({ collections }) => collections)
    .filter(({ key }) => holds(key, query))
    .toSorted(newestFirst)
  return { records, contradicted, ...(covering && { covering }) }
}

/**
 * The newest recorded state of one object. 'absent': a collection that would hold it does not, at a
 * later version than that of `known` and of all recorded states. `undefined`: nothing is known.
 */
export function mergedRecord(
  named: Omit<ObjectKey, 'partition'>,
  source: RecordSource,
  known?: KnownState,
): MergedRecord | 'absent' | undefined {
  const newest = newestRecord(named, objectPartitions(source, named.gvr), source.store, known)
  return typeof newest === 'object' ? newest.record : newest
}

interface RecordAndState {
  readonly record: MergedRecord
  readonly stored: StoredObject
}

function newestRecord(
  named: Omit<ObjectKey, 'partition'>,
  partitions: readonly ObjectPartition[],
  store: ObjectStore,
  known?: KnownState,
): RecordAndState | 'absent' | undefined {
  let newest: RecordAndState | undefined
  const lacking: StoredCollection[] = []
  for (const { partition, encoding, collections } of partitions) {
    const key = { ...named, partition }
    const stored = store.get(key)
    if (typeof stored !== 'object') {
      if (stored === 'absent') lacking.push(...collections)
      continue
    }
    if (encoding === 'protobuf' && !schemaOf(stored.gvk)) continue
    const { gvk, confirmedVersion, confirmedAt } = stored
    const { resourceVersion: version } = stored.object
    const record = { key, gvk, encoding, resourceVersion: version, confirmedVersion, confirmedAt }
    const found = { record, stored }
    if (!newest || isBefore(newest.stored, stored)) newest = found
  }
  const versions = [newest?.record.confirmedVersion, known?.version].flatMap((each) => each ?? [])
  const query = queryOfName(named)
  // Collections that would hold it, and do not.
  const isAbsent = [
    ...lacking.filter(({ key }) => holds(key, query)),
    ...partitions.flatMap(({ collections }) =>
      collections.filter(({ key }) => isOfItsNode(key, named, newest, known)),
    ),
  ].some(({ resourceVersion: at }) => versions.every((version) => isNewer(at, version)))
  return isAbsent ? 'absent' : newest
}

const queryOfName = ({ namespace, name }: ObjectName): Omit<RecordQuery, 'gvr'> => ({
  ...(namespace !== '' && { namespace }),
  labelSelector: '',
  fieldSelector: selectorOfName(name),
})

/**
 * Whether a collection has the pods of the node that this pod is bound to, as a kubelet reads them.
 * A pod keeps its node for as long as it exists: where it is missing at a later version than that
 * of its newest state, it is deleted. A label or another field that selected it may have changed.
 */
function isOfItsNode(
  key: CollectionKey,
  { gvr, namespace }: Omit<ObjectKey, 'partition'>,
  newest: RecordAndState | undefined,
  known: KnownState | undefined,
): boolean {
  if (qualifiedResource(gvr) !== 'pods' || key.labelSelector !== '') return false
  if (key.namespace !== undefined && key.namespace !== namespace) return false
  const [, nodeName] = /^spec\.nodeName=([^,]+)$/.exec(key.fieldSelector) ?? []
  if (nodeName === undefined) return false
  const isKnownLater = known && isNewer(known.version, newest?.record.confirmedVersion ?? '')
  if (isKnownLater || !newest) return known?.nodeName === nodeName
  const { encoding } = newest.record
  const { gvk, object } = newest.stored
  const selection = selectionOf(gvr, key, objectRepresentation(encoding))
  return selection?.selects(gvk, encoding, object) ?? false
}

/** Whether a collection certainly has everything that a query selects. */
const holds = (key: CollectionKey, query: Omit<RecordQuery, 'gvr'>): boolean =>
  (key.namespace === undefined || key.namespace === query.namespace) && covers(key, query)

/**
 * Of one version, the state that is known to hold up to a newer version; of those that hold equally
 * long, the one confirmed later. Never by the time first: a get confirms an object at its own
 * version, and whatever list is newer than that would then seem to lack it.
 */
function isBefore(a: StoredObject, b: StoredObject): boolean {
  const byVersion =
    compared(a.object.resourceVersion, b.object.resourceVersion) ||
    compared(a.confirmedVersion, b.confirmedVersion)
  return byVersion < 0 || (byVersion === 0 && b.confirmedAt > a.confirmedAt)
}

const newestFirst = (a: StoredCollection, b: StoredCollection): number =>
  compared(b.resourceVersion, a.resourceVersion)

/** Versions that do not compare count as equal. */
function compared(a: string, b: string): number {
  const [x, y] = [resourceVersion(a), resourceVersion(b)]
  return x !== undefined && y !== undefined ? compareVersions(x, y) : 0
}

/**
 * A version from which a watch would miss no change of the records: that of the collection that
 * holds them all, else the oldest of theirs; '' where they do not compare.
 */
export function versionOf({ covering, records }: MergedRecords): string {
  if (covering) return covering.resourceVersion
  const versions = records.map(({ confirmedVersion }) => resourceVersion(confirmedVersion))
  if (versions.includes(undefined) || newestVersion(versions) === undefined) return ''
  return versions.flatMap((each) => each ?? []).toSorted(compareVersions)[0] ?? ''
}
