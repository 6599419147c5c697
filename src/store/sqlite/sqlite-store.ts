import { stillThere } from '../../base/file-stamp.ts'
import { latest, now } from '../../base/clock.ts'
import type { ObjectEvent, WatchEvent } from '../../codec/watch.ts'
import type { GVK, GVR } from '../../kube/gvk.ts'
import type { ApiObject } from '../../kube/object.ts'
import type { Identity } from '../../request/identity.ts'
import {
  StoreFailure,
  type ApplyOptions,
  type Audience,
  type CollectionKey,
  type DocumentKey,
  type KnownCollection,
  type KnownDocument,
  type ObjectKey,
  type ObjectStore,
  type Replacement,
  type StoredChanges,
  type StoredDocument,
  type StoredList,
  type StoredObject,
} from '../store.ts'
import type { TellNeeded } from '../needed.ts'
import { addressOf, keyOf, scopeOf } from './address.ts'
import { changesOf, type CollectionState } from './collection-state.ts'
import { Collections } from './collections.ts'
import { diskWorkOf, type DiskWork, type SharedDiskWork } from './disk-work.ts'
import {
  pack,
  unpack,
  type Apply,
  type Damaged,
  type Displaced,
  type Operation,
  type Put,
  type ScopeKey,
  type WriterOptions,
} from './messages.ts'
import type { Begun, Place } from './place.ts'
import type { Confirmation, Reads, Stored, StoredEvent } from './reads.ts'
import { isRecent } from './recent.ts'
import { Recovery } from './recovery.ts'
import { StagedReplacement } from './replacement.ts'
import { Runs } from './runs.ts'
import { Room, type OnEvicted } from './room.ts'
import type { Snapshots } from './snapshots.ts'
import { confirmationOf, newestOf, verdictOn, type Standing } from './standing.ts'
import { Sweep } from './sweep.ts'
import type { ReportTrouble } from './trouble.ts'
import { mayFollow, newest } from './versions.ts'
import { WriteQueue, type OnCommitted } from './write-queue.ts'
import { WriterThread } from './writer-thread.ts'

export interface Parts {
  /** Keeps the directory from others, and starts writers; let go when all is closed. */
  readonly place: Place
  /** The first writer, or why there is none yet. */
  readonly first: Begun | StoreFailure
  readonly options: WriterOptions
  /** What is stored may not be on the disk yet. */
  readonly crashed: boolean
  /** What is read until there is a writer, and with it. */
  readonly reads: Reads
  /** The same anew, while there is none. */
  readonly readAlone: () => Reads | undefined
  readonly snapshots: Snapshots
  readonly report: ReportTrouble
  readonly onCommitted: OnCommitted
  readonly onRecovered: () => void
  readonly onEvicted: OnEvicted
  readonly needed: TellNeeded
}

/** What is remembered as damaged, so that it is reported once; a disk that forgets everything is not to fill the memory. */
const mostMarks = 10_000

/** A body that a ring refers to is damaged. */
class Incomplete extends StoreFailure {}

/** Reads on this thread, writes through the queue to the other. */
export class SqliteStore implements ObjectStore {
  readonly #writer: WriterThread<Begun>
  readonly #queue: WriteQueue
  #reads: Reads
  /** As long as there was no writer yet: one that tried and failed may have changed what lies there. */
  #readAlone: (() => Reads | undefined) | undefined
  #readBefore: Reads | undefined
  readonly #snapshots: Snapshots
  readonly #place: Place
  readonly #recovery: Recovery
  readonly #report: ReportTrouble
  readonly #diskWork: SharedDiskWork
  readonly #collections: Collections
  readonly #sweep: Sweep
  readonly #damaged = new Set<string>()
  /** Scopes written to in this run, and whether only for a person at a console. */
  readonly #noted = new Map<string, boolean>()
  /** Missed a write, and this could not be written down either. */
  readonly #undisowned = new Set<CollectionState>()
  #replacements = 0
  /** Not committed yet: until then what is stored does not tell what a put has to write. */
  #forgetting = 0
  #closed: Promise<void> | undefined
  readonly #path: string
  #isInPlace: () => boolean

  constructor(parts: Parts) {
    const { place, first, options, crashed, reads, readAlone, snapshots } = parts
    const { report, onCommitted, onRecovered } = parts
    this.#reads = reads
    this.#collections = new Collections(crashed)
    this.#snapshots = snapshots
    this.#place = place
    this.#report = report
    this.#diskWork = options.diskWork
    this.#path = options.path
    this.#isInPlace = stillThere(options.path)
    const room = new Room({
      push: (write) => this.#queue.push(write),
      gone: (collection) => this.#collections.known(collection)?.reload(),
      giveUpReader: () => snapshots.giveUpFirst(),
      onEvicted: parts.onEvicted,
      needed: parts.needed,
    })
    this.#queue = new WriteQueue(snapshots, onCommitted, () => room.isScarce())
    this.#recovery = new Recovery((trial) => this.#queue.push(trial), onRecovered)
    this.#readAlone = first instanceof StoreFailure ? readAlone : undefined
    this.#writer = new WriterThread<Begun>(first, () => place.begin(), {
      onEnded: (failure) => this.#interrupted(failure),
      onStarted: (begun) => this.#started(begun),
    })
    this.#sweep = new Sweep({
      write: (operation) => this.#write(operation, 0),
      idle: () => this.#read(() => this.#reads.idleAudiences()) ?? [],
      forget: (identity) => this.#forgetAudience(identity),
    })
  }

  /** False where its file was removed or replaced under it: what is written then is gone with the process. */
  isInPlace(): boolean {
    return this.#isInPlace()
  }

  /** What this store has done to the disk in this run. */
  get diskWork(): DiskWork {
    return diskWorkOf(this.#diskWork)
  }

  /** How many collections are unfit because of a write in this run. */
  get unfitCollections(): number {
    return this.#collections.unfit
  }

  /** When the cloud last confirmed a collection of each resource, oldest first; of none where that cannot be read. */
  confirmations(): readonly Confirmation[] {
    return this.#read(() => this.#reads.confirmations()) ?? []
  }

  get(key: ObjectKey): StoredObject | 'absent' | undefined {
    this.#sweep.used(key.audience.identity)
    return this.#read(() => this.#get(key))
  }

  list(key: CollectionKey): StoredList | undefined {
    this.#sweep.used(key.audience.identity)
    return this.#read(() => this.#list(key))
  }

  changes(key: CollectionKey, since: string): StoredChanges | 'expired' | undefined {
    this.#sweep.used(key.audience.identity)
    return this.#read(() => this.#changes(key, since))
  }

  version(key: CollectionKey): string | undefined {
    this.#sweep.used(key.audience.identity)
    return this.#read(() => {
      const address = addressOf(key)
      const state = this.#collections.known(address)
      if (state) return state.version(this.#reads)
      const head = this.#reads.head(address)
      return head?.whole ? head.version : undefined
    })
  }

  collections(audience: Audience, gvr: GVR, namespace: string | undefined): KnownCollection[] {
    this.#sweep.used(audience.identity)
    const found = this.#read(() => this.#reads.collections(scopeOf(audience, gvr), namespace ?? ''))
    return (found ?? []).flatMap(({ address, version }) => {
      if (!this.#collections.serves(address) || this.#collections.holes(address)) return []
      return [{ key: keyOf(audience, gvr, address), resourceVersion: version }]
    })
  }

  names(audience: Audience, gvr: GVR): readonly { namespace: string; name: string }[] {
    return this.#read(() => this.#reads.names(scopeOf(audience, gvr))) ?? []
  }

  document({ identity, url, accept }: DocumentKey): KnownDocument | undefined {
    this.#sweep.used(identity)
    const key = [identity, url, accept] as const
    const found = this.#read(() => this.#reads.document(key))
    if (found !== 'damaged') return found
    this.#setApart(JSON.stringify(key), { document: key })
    return undefined
  }

  documents(
    identity: Identity,
    most: number,
  ): readonly (DocumentKey & Pick<KnownDocument, 'confirmedAt'>)[] {
    const rows = this.#read(() => this.#reads.documents(identity, most)) ?? []
    return rows.map((row) => ({ identity, ...row }))
  }

  async put({ audience, gvr }: ObjectKey, gvk: GVK, object: ApiObject): Promise<void> {
    this.#sweep.used(audience.identity)
    const scope = scopeOf(audience, gvr)
    this.#asked(scope, audience)
    if (this.#forgetting === 0 && this.#read(() => this.#isStale(scope, object))) return
    const operation: Put = {
      kind: 'put',
      scope,
      gvk,
      objects: pack([object]),
      confirmedAt: now(),
    }
    await this.#write(operation, object.bytes.byteLength)
  }

  async forget({ audience, gvr, namespace, name }: ObjectKey): Promise<void> {
    this.#forgetting += 1
    try {
      await this.#write({ kind: 'forget', scope: scopeOf(audience, gvr), namespace, name }, 0)
    } finally {
      this.#forgetting -= 1
    }
  }

  replace(key: CollectionKey): Replacement {
    this.#sweep.used(key.audience.identity)
    this.#replacements += 1
    this.#collections.trim()
    const state = this.#collections.of(addressOf(key))
    this.#asked(state.address.scope, key.audience)
    return new StagedReplacement({
      state,
      queue: this.#queue,
      reads: this.#reads,
      replacement: this.#replacements,
      missed: (failure) => this.#missed(state, failure),
    })
  }

  async apply(
    key: CollectionKey,
    events: readonly WatchEvent[],
    { since = '', previous = true }: ApplyOptions = {},
  ): Promise<readonly (ApiObject | undefined)[]> {
    this.#sweep.used(key.audience.identity)
    const state = this.#collections.of(addressOf(key))
    this.#asked(state.address.scope, key.audience)
    const changes = changesOf(events)
    const version = newestIn(events)
    if (changes.length === 0 && (version === '' || this.#saysTheSame(state, version))) {
      return events.map(() => undefined)
    }
    const settle = state.accepted({ changes, version, since })
    const operation = { ...toApply(state, events, version), since, previous }
    const displaced = await state.track(
      this.#queue.push({
        operation: () => ({ ...operation, whole: !state.misses }),
        bytes: operation.objects.bytes.byteLength,
        settled: (failure) => {
          settle(failure !== undefined)
          if (failure) this.#missed(state, failure)
          else {
            state.confirmed(operation.confirmedAt)
            this.#disownAgain()
          }
        },
      }),
    )
    for (const each of displaced?.damaged ?? []) this.#quarantine(state.address.scope, each)
    return toPrevious(events, displaced)
  }

  /** Whether bookmarks only confirm a collection at its version, which was written down not long ago. */
  #saysTheSame(state: CollectionState, version: string): boolean {
    const isSame = this.#read(
      () =>
        state.version(this.#reads) === version &&
        isRecent(this.#reads.head(state.address)?.confirmedAt ?? 0),
    )
    if (isSame !== true) return false
    state.confirmed(now())
    return true
  }

  async putDocument(key: DocumentKey, { contentType, body }: StoredDocument): Promise<void> {
    const stored = this.document(key)
    if (
      stored?.contentType === contentType &&
      Buffer.compare(stored.body, body) === 0 &&
      isRecent(stored.confirmedAt)
    )
      return
    const { identity, url, accept } = key
    const copy = new Uint8Array(body)
    await this.#write(
      {
        kind: 'document',
        key: [identity, url, accept],
        contentType,
        body: copy,
        confirmedAt: now(),
      },
      copy.byteLength,
    )
    this.#damaged.delete(JSON.stringify([identity, url, accept]))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return (this.#closed ??= this.#close())
  }

  /** Forgets what was kept for tokens that nobody used for long; runs by itself once a day. `day` is counted from the epoch. */
  sweep(day?: number): Promise<void> {
    return this.#sweep.run(day)
  }

  async #close(): Promise<void> {
    this.#sweep[Symbol.dispose]()
    this.#recovery[Symbol.dispose]()
    await this.#queue.close()
    this.#reads.close()
    await this.#writer[Symbol.asyncDispose]()
    this.#readBefore?.close()
    this.#place[Symbol.dispose]()
  }

  /** Lists that are being read go on through another connection. */
  #started({ worker, reads }: Begun): void {
    if (reads && reads !== this.#reads) {
      // Not before the writer is closed: see `openReadsAlone`.
      this.#readBefore = this.#reads
      this.#readAlone = undefined
      this.#reads = reads
      this.#isInPlace = stillThere(this.#path)
    }
    this.#queue.attach(worker)
    this.#disownAgain()
    this.#recovery.tryNow()
  }

  /** What was being written is not, and what is staged will be dropped. */
  #interrupted(failure: StoreFailure): void {
    this.#failed('writer', failure)
    this.#queue.refuse(failure)
    this.#collections.interrupt()
    const alone = this.#readAlone?.()
    if (!alone) return
    this.#reads.close()
    this.#reads = alone
  }

  #get({ audience, gvr, namespace, name }: ObjectKey): StoredObject | 'absent' | undefined {
    const scope = scopeOf(audience, gvr)
    const standing = this.#standing(scope, namespace, name)
    if (!standing) return undefined
    const found = verdictOn(
      standing,
      ({ address, holes }) => holes || this.#collections.holes(address),
    )
    if (typeof found !== 'object') return found
    const [object] = this.#bodies(scope, [found.stored])
    return (
      object && {
        gvk: found.gvk,
        object,
        confirmedVersion: found.confirmed,
        confirmedAt: confirmationOf(standing, found),
      }
    )
  }

  /** Without what collections say that missed a write. */
  #standing(scope: ScopeKey, namespace: string, name: string): Standing | undefined {
    const standing = this.#reads.standing(scope, namespace, name)
    return (
      standing && {
        ...standing,
        holdings: standing.holdings.filter(({ address }) => this.#collections.serves(address)),
      }
    )
  }

  #list(key: CollectionKey): StoredList | undefined {
    const address = addressOf(key)
    const state = this.#collections.known(address)
    if (state?.unfit) return undefined
    const found = this.#reads.atOnce(() => {
      const head = this.#reads.head(address)
      if (head?.isDamaged) this.#setApart(JSON.stringify(address), { collection: address })
      return head?.whole ? { head, members: this.#reads.members(head.id) } : undefined
    })
    if (!found) return undefined
    const { gvk, version, extra, confirmedAt } = found.head
    // What was found damaged may not be set apart yet.
    const damaged = (stored: Stored): boolean => this.#damaged.has(markOf(stored))
    const holes = found.head.holes || this.#collections.holes(address)
    let isWhole = !holes && (this.#damaged.size === 0 || !found.members.some(damaged))
    return {
      gvk,
      resourceVersion: version,
      extra,
      confirmedAt: state?.confirmedAt ? latest(confirmedAt, state.confirmedAt) : confirmedAt,
      batches: new Runs(found.members, this.#snapshots.read(), (run) => {
        const objects = this.#run(address.scope, run)
        isWhole &&= objects.length === run.length
        return objects
      }),
      isWhole: () => isWhole,
    }
  }

  #changes(key: CollectionKey, since: string): StoredChanges | 'expired' | undefined {
    const address = addressOf(key)
    if (!this.#collections.serves(address)) return undefined
    const found = this.#reads.atOnce(() => {
      const head = this.#reads.head(address)
      return head?.whole ? { head, events: this.#reads.events(head, since) } : undefined
    })
    if (!found) return undefined
    const { gvk, extra, version: resourceVersion } = found.head
    const { events = 'expired' } = found
    if (events === 'damaged') this.#setApart(JSON.stringify(address), { ring: address })
    if (typeof events === 'string') return 'expired'
    const batches = new Runs(events, this.#snapshots.read(), (run) =>
      this.#events(address.scope, run),
    )
    try {
      return { gvk, extra, resourceVersion, batches: batches.readAhead() }
    } catch (failure) {
      batches.return()
      if (failure instanceof Incomplete) return 'expired'
      throw failure
    }
  }

  #events(scope: ScopeKey, run: readonly StoredEvent[]): readonly ObjectEvent[] {
    const wanted = new Map<number, Stored>()
    for (const { object, previous } of run) {
      wanted.set(object.id, object)
      if (previous) wanted.set(previous.id, previous)
    }
    const ids = [...wanted.keys()]
    const objects = this.#run(scope, [...wanted.values()])
    // One that cannot be read would be a hole.
    if (objects.length < ids.length) throw new Incomplete('an event is damaged')
    const byId = new Map(ids.map((id, index) => [id, objects[index]]))
    return run.flatMap(({ type, object: { id }, previous }) => {
      const object = byId.get(id)
      const before = previous && byId.get(previous.id)
      return object ? [{ type, object, ...(before && { previous: before }) }] : []
    })
  }

  /** A list that is being read cannot be answered otherwise than by breaking off. */
  #run(scope: ScopeKey, run: readonly Stored[]): readonly ApiObject[] {
    const objects = this.#read(() => this.#bodies(scope, run))
    if (!objects) throw new StoreFailure('what is stored cannot be read further')
    return objects
  }

  #bodies(scope: ScopeKey, wanted: readonly Stored[]): readonly ApiObject[] {
    return this.#reads.bodies(scope, wanted, (stored) => this.#quarantine(scope, stored))
  }

  /** Noted before the first write: where nobody else has anything, what a person asked for is marked; it is not any more once a program does. */
  #asked(scope: ScopeKey, { passing = false }: Audience): void {
    const text = JSON.stringify(scope)
    const noted = this.#noted.get(text)
    if (noted === false || noted === passing) return
    if (this.#noted.size >= mostMarks) this.#noted.clear()
    this.#noted.set(text, passing)
    const stored = this.#read(() => this.#reads.isPassing(scope))
    if (passing ? stored !== undefined : noted === undefined && stored !== true) return
    this.#write({ kind: 'asked', scope, passing }, 0).catch(() => this.#noted.delete(text))
  }

  /** Whether the record is at this version already, or something newer is known. */
  #isStale(scope: ScopeKey, { namespace, name, uid, resourceVersion }: ApiObject): boolean {
    const standing = this.#standing(scope, namespace, name)
    const known = standing && newestOf(standing)
    if (!known || resourceVersion === '') return false
    if (!mayFollow(resourceVersion, known.stored.resourceVersion)) return true
    const record = standing.single?.stored
    return (
      record?.resourceVersion === resourceVersion &&
      record.uid === uid &&
      isRecent(confirmationOf(standing, known)) &&
      !this.#damaged.has(markOf(record))
    )
  }

  /** What cannot be read is known to nobody any more, and the collections that held it know that they lack something. */
  #quarantine(scope: ScopeKey, { id, namespace, name, resourceVersion }: Damaged): void {
    const object = { id, namespace, name, resourceVersion }
    if (!this.#setApart(markOf(object), { scope, object })) return
    for (const state of this.#collections.ofScope(scope)) state.damaged()
    this.#write({ kind: 'quarantine', scope, object }, 0).catch(() => undefined)
  }

  /** Reported once. False: it was known. */
  #setApart(mark: string, what: object): boolean {
    if (this.#damaged.has(mark)) return false
    if (this.#damaged.size >= mostMarks) this.#damaged.clear()
    this.#damaged.add(mark)
    this.#report('damaged', new StoreFailure('what is stored is damaged', { cause: what }))
    return true
  }

  /** A collection missed a write: after a restart it must not be served either. */
  #missed(state: CollectionState, failure: StoreFailure): void {
    this.#failed('write', failure)
    this.#disown(state)
  }

  #failed(kind: 'write' | 'writer', failure: StoreFailure): void {
    this.#report(kind, failure)
    this.#recovery.failed()
  }

  #disown(state: CollectionState): void {
    const operation: Operation = { kind: 'disown', collection: state.address }
    this.#queue
      .push({ operation: () => operation, bytes: 0 })
      .catch(() => this.#undisowned.add(state))
  }

  /** The disk takes writes again. A list that was committed since needs no more. */
  #disownAgain(): void {
    for (const state of this.#undisowned) if (state.misses) this.#disown(state)
    this.#undisowned.clear()
  }

  async #write(operation: Operation, bytes: number): Promise<void> {
    const settled = (failure?: StoreFailure): void => this.#settled(failure)
    await this.#queue.push({ operation: () => operation, bytes, settled })
  }

  #settled(failure?: StoreFailure): void {
    if (failure) this.#failed('write', failure)
    else this.#disownAgain()
  }

  /** One step. What was worked out from what it takes away must not be written after it. */
  async #forgetAudience(identity: string): Promise<void> {
    const operation: Operation = { kind: 'forget-audience', identity }
    const settled = (failure?: StoreFailure): void => {
      this.#settled(failure)
      if (failure) return
      this.#reads.forgetScopes()
      this.#noted.clear()
      this.#collections.reload(identity)
    }
    await this.#queue.push({ operation: () => operation, bytes: 0, alone: true, settled })
  }

  /** What cannot be read is not known. */
  #read<T>(read: () => T): T | undefined {
    if (this.#closed) return undefined
    try {
      return read()
    } catch (cause) {
      this.#report('read', new StoreFailure('the store cannot be read', { cause }))
      return undefined
    }
  }
}

const markOf = ({ id, namespace, name, resourceVersion }: Damaged): string =>
  JSON.stringify([id, namespace, name, resourceVersion])

function toApply(
  state: CollectionState,
  events: readonly WatchEvent[],
  version: string,
): Omit<Apply, 'since' | 'previous'> {
  const told = events.filter((event) => event.type !== 'BOOKMARK' && event.type !== 'ERROR')
  return {
    kind: 'apply',
    collection: state.address,
    whole: true,
    types: told.map(({ type }) => type),
    objects: pack(told.map(({ object }) => object)),
    version,
    confirmedAt: now(),
  }
}

function newestIn(events: readonly WatchEvent[]): string {
  let version = ''
  for (const event of events) {
    if (event.type === 'BOOKMARK') version = newest(version, event.resourceVersion)
    else if (event.type !== 'ERROR') version = newest(version, event.object.resourceVersion)
  }
  return version
}

/** Positions among objects become positions among events. */
function toPrevious(
  events: readonly WatchEvent[],
  displaced: Displaced | undefined,
): readonly (ApiObject | undefined)[] {
  if (displaced === undefined) return events.map(() => undefined)
  const objects = unpack(displaced.objects)
  const byPosition = new Map(
    displaced.positions.map((position, index) => [position, objects[index]]),
  )
  let position = 0
  return events.map(({ type }) => {
    if (type === 'BOOKMARK' || type === 'ERROR') return undefined
    position += 1
    return byPosition.get(position - 1)
  })
}
