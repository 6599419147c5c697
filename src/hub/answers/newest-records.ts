import { turn } from '../../base/clock.ts'
import { selectionOf } from '../../api/codec/selection.ts'
import { schemaOf } from '../../api/codec/schema/schema.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import { namespacedName } from '../../api/kube/object.ts'
import { isNewer } from '../../api/kube/resource-version.ts'
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

/** The newest recorded state of an object, without its bytes. */
export interface NewestRecord {
  readonly key: ObjectKey
  readonly gvk: GVK
  readonly encoding: Encoding
  /** Of the object. */
  readonly resourceVersion: string
  readonly confirmedVersion: string
  readonly confirmedAt: number
}

export interface NewestRecords {
  /** Ordered by namespace and name. */
  readonly records: readonly NewestRecord[]
  /**
   * The newest collection that holds all that the query selects; absent: there may be more objects.
   */
  readonly covering?: StoredCollection
}

const encodings = new Map(
  (['json', 'protobuf'] as const).map((each) => [objectRepresentation(each).key, each]),
)

/** One of whole objects has an encoding. */
type Copy = StoredPartition & { readonly encoding: Encoding | undefined }

/**
 * The copies of each caller, where API servers may answer each differently: what one of them was
 * not given says nothing of what another was.
 */
function copiesOf({ store, reach }: RecordSource, gvr: GVR): readonly (readonly Copy[])[] {
  const readers = reach === 'everyone' ? [undefined] : [nodeIdentity, hubIdentity]
  const copies = readers
    .flatMap((reader) => store.partitions(gvr, reader))
    .map((each) => ({ ...each, encoding: encodings.get(each.partition.representation) }))
  // The hub reads for itself with the node's credentials.
  const callerOf = ({ partition: { identity } }: Copy): string =>
    identity === hubIdentity ? nodeIdentity : identity
  return [...Map.groupBy(copies, callerOf).values()]
}

/** Reads of one turn of the event loop. */
const readsAtOnce = 64

/**
 * Of each object that any copy of the resource holds and that the query selects, the newest state.
 * `undefined` where a selector cannot be decided, or a state not be decoded.
 */
export async function newestRecords(
  query: RecordQuery,
  source: RecordSource,
): Promise<NewestRecords | undefined> {
  const { gvr, namespace } = query
  const copies = copiesOf(source, gvr)
  const whole = copies.flat().filter(({ encoding }) => encoding)
  const selections = new Map(
    encodings
      .values()
      .map((each) => [each, selectionOf(gvr, query, objectRepresentation(each))] as const),
  )
  if (whole.some(({ encoding }) => encoding && !selections.get(encoding))) return undefined
  const named = whole.flatMap(({ names }) => names)
  const names = new Map(
    named
      .filter((each) => namespace === undefined || each.namespace === namespace)
      .map((each) => [namespacedName(each), each]),
  )
  const records: NewestRecord[] = []
  let read = 0
  for (const [, each] of [...names].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (++read % readsAtOnce === 0) await turn()
    const newest = newestOf({ gvr, ...each }, copies, source.store)
    if (newest === 'unread') return undefined
    if (typeof newest !== 'object') continue
    const { record, stored } = newest
    if (selections.get(record.encoding)?.selects(stored.gvk, record.encoding, stored.object))
      records.push(record)
  }
  const covering = (copies.length > 1 ? [] : whole)
    .flatMap(({ collections }) => collections)
    .filter(({ key }) => holds(key, query))
    .reduce<StoredCollection | undefined>(
      (a, b) => (a && !isNewer(b.resourceVersion, a.resourceVersion) ? a : b),
      undefined,
    )
  return { records, ...(covering && { covering }) }
}

/**
 * The newest recorded state of one object. 'absent': a list that would have it has not, and is
 * later than `shownAt`. `undefined`: nothing is known.
 */
export function newestRecord(
  named: Omit<ObjectKey, 'partition'>,
  source: RecordSource,
  shownAt?: string,
): NewestRecord | 'absent' | undefined {
  const newest = newestOf(named, copiesOf(source, named.gvr), source.store, shownAt)
  if (typeof newest === 'object') return newest.record
  return newest === 'unread' ? undefined : newest
}

interface Newest {
  readonly record: NewestRecord
  readonly stored: StoredObject
}

/** As `newestOfCaller`, of all: 'absent' only where it is so for each. */
function newestOf(
  named: Omit<ObjectKey, 'partition'>,
  copies: readonly (readonly Copy[])[],
  store: ObjectStore,
  shownAt?: string,
): Newest | 'absent' | 'unread' | undefined {
  const all = copies.map((each) => newestOfCaller(named, each, store, shownAt))
  const newest = all.reduce<Newest | undefined>(
    (a, b) => (typeof b !== 'object' || (a && !isLater(b.record, a.record)) ? a : b),
    undefined,
  )
  if (newest) return newest
  if (all.includes('unread')) return 'unread'
  return all.length > 0 && all.every((each) => each === 'absent') ? 'absent' : undefined
}

/**
 * 'unread': no state can be decoded, as of metadata. What an API server has sent at a later version
 * in such a form is not absent either.
 */
function newestOfCaller(
  named: Omit<ObjectKey, 'partition'>,
  copies: readonly Copy[],
  store: ObjectStore,
  shownAt?: string,
): Newest | 'absent' | 'unread' | undefined {
  let newest: Newest | undefined
  let known = shownAt
  const lacking: StoredCollection[] = []
  for (const { partition, encoding, collections } of copies) {
    const key = { ...named, partition }
    const stored = store.get(key)
    if (stored === 'absent' && encoding) lacking.push(...collections)
    if (typeof stored !== 'object') continue
    const { gvk, object, confirmedVersion, confirmedAt } = stored
    if (known === undefined || isNewer(confirmedVersion, known)) known = confirmedVersion
    if (!encoding || (encoding === 'protobuf' && !schemaOf(gvk))) continue
    const { resourceVersion } = object
    const record = { key, gvk, encoding, resourceVersion, confirmedVersion, confirmedAt }
    if (!newest || isLater(record, newest.record)) newest = { record, stored }
  }
  const { namespace, name } = named
  const query = { ...(namespace !== '' && { namespace }), ...ofName(name) }
  const isAbsent = lacking.some(
    ({ key, resourceVersion }) =>
      holds(key, query) && (known === undefined || isNewer(resourceVersion, known)),
  )
  if (isAbsent) return 'absent'
  return newest ?? (known === undefined ? undefined : 'unread')
}

const ofName = (name: string): Pick<RecordQuery, 'labelSelector' | 'fieldSelector'> => ({
  labelSelector: '',
  fieldSelector: selectorOfName(name),
})

/** Whether a collection certainly has everything that a query selects. */
const holds = (key: CollectionKey, query: Omit<RecordQuery, 'gvr'>): boolean =>
  (key.namespace === undefined || key.namespace === query.namespace) && covers(key, query)

/**
 * Of one version, the state that is known to hold up to a newer version. Never by the time: a get
 * confirms an object at its own version, and whatever list is newer would then seem to lack it.
 */
const isLater = (a: NewestRecord, b: NewestRecord): boolean =>
  a.resourceVersion === b.resourceVersion
    ? isNewer(a.confirmedVersion, b.confirmedVersion)
    : isNewer(a.resourceVersion, b.resourceVersion)
