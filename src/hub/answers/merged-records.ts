import { turn } from '../../base/clock.ts'
import { selectionOf } from '../../api/codec/selection.ts'
import { schemaOf } from '../../api/codec/schema/schema.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import {
  compareVersions,
  isNewer,
  newestVersion,
  resourceVersion,
} from '../../api/kube/resource-version.ts'
import { covers, selectorOfName } from '../../api/kube/selectors.ts'
import type { Identity } from '../../api/request/identity.ts'
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
  /** Whether what was recorded for this identity counts. */
  readonly isShown: (identity: Identity) => boolean
}

/** What to look for among the records. */
export interface RecordQuery {
  readonly gvr: GVR
  /** Absent: all namespaces, or a cluster-scoped resource. */
  readonly namespace?: string
  readonly labelSelector: string
  readonly fieldSelector: string
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
  /** The newest collection that holds all that was looked for; absent: there may be more. */
  readonly covering?: StoredCollection
  /** The callers whose records these are. */
  readonly identities: readonly Identity[]
}

const encodings = new Map(
  (['json', 'protobuf'] as const).map((each) => [objectRepresentation(each).key, each]),
)

/** A partition that holds whole objects. */
type ObjectPartition = StoredPartition & { readonly encoding: Encoding }

const objectPartitions = ({ store, isShown }: RecordSource, gvr: GVR): ObjectPartition[] =>
  store.partitions(gvr).flatMap((each) => {
    const encoding = encodings.get(each.partition.representation)
    return encoding && isShown(each.partition.identity) ? [{ ...each, encoding }] : []
  })

/** Reads of one turn of the event loop. */
const readsAtOnce = 64

/**
 * The newest state of each object that any of the records hold and that the query selects. An
 * object is left out if a newer collection of any caller would hold it and does not, and if its
 * bytes cannot be decoded. `undefined` where a selector cannot be decided.
 */
export async function mergedRecords(
  query: RecordQuery,
  source: RecordSource,
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
  const names = new Map<string, { namespace: string; name: string }>()
  for (const each of partitions.flatMap((partition) => partition.names)) {
    if (namespace === undefined || each.namespace === namespace)
      names.set(`${each.namespace}/${each.name}`, each)
  }
  const records: MergedRecord[] = []
  const identities = new Set<Identity>()
  let read = 0
  for (const [, named] of [...names].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const newest = newestRecord({ gvr, ...named }, partitions, source.store)
    if (++read % readsAtOnce === 0) await turn()
    if (typeof newest !== 'object') continue
    const { record, stored } = newest
    if (!selections.get(record.encoding)?.selects(stored.gvk, record.encoding, stored.object))
      continue
    records.push(record)
    identities.add(record.key.partition.identity)
  }
  const [covering] = partitions
    .flatMap(({ collections }) => collections)
    .filter(({ key }) => holds(key, query))
    .toSorted(newestFirst)
  if (covering) identities.add(covering.key.partition.identity)
  return { records, identities: [...identities], ...(covering && { covering }) }
}

/**
 * The newest recorded state of one object. 'absent': the newest that is known of it is a collection
 * that would hold it and does not, of a later version than `since`, at which it was there.
 * `undefined`: nothing is known.
 */
export function mergedRecord(
  named: Omit<ObjectKey, 'partition'>,
  source: RecordSource,
  since?: string,
): MergedRecord | 'absent' | undefined {
  const newest = newestRecord(named, objectPartitions(source, named.gvr), source.store, since)
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
  since?: string,
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
  const versions = [newest?.record.confirmedVersion, since].flatMap((each) => each ?? [])
  return isDenied(named, versions, lacking) ? 'absent' : newest
}

/** Whether a collection that would hold the object does not, at a newer version than all these. */
function isDenied(
  { namespace, name }: Omit<ObjectKey, 'partition'>,
  versions: readonly string[],
  lacking: readonly StoredCollection[],
): boolean {
  const query = {
    ...(namespace !== '' && { namespace }),
    labelSelector: '',
    fieldSelector: selectorOfName(name),
  }
  return lacking.some(
    (each) =>
      holds(each.key, query) && versions.every((version) => isNewer(each.resourceVersion, version)),
  )
}

/** Whether a collection certainly has everything that a query selects. */
const holds = (key: CollectionKey, query: Omit<RecordQuery, 'gvr'>): boolean =>
  (key.namespace === undefined || key.namespace === query.namespace) && covers(key, query)

/** Of one version, the state that was confirmed later counts. */
function isBefore(a: StoredObject, b: StoredObject): boolean {
  if (isNewer(b.object.resourceVersion, a.object.resourceVersion)) return true
  return (
    !isNewer(a.object.resourceVersion, b.object.resourceVersion) &&
    (isNewer(b.confirmedVersion, a.confirmedVersion) || b.confirmedAt > a.confirmedAt)
  )
}

/** Versions that do not compare count as equal. */
function newestFirst(a: StoredCollection, b: StoredCollection): number {
  const [x, y] = [resourceVersion(a.resourceVersion), resourceVersion(b.resourceVersion)]
  return x !== undefined && y !== undefined ? compareVersions(y, x) : 0
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
