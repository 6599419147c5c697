import type { ListBatch } from '../../../api/codec/list.ts'
import { now } from '../../../base/clock.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { StoreFailure, type CollectionHead, type Replacement } from '../store.ts'
import { nameKey, textInScope, textOf, type CollectionAddress } from './address.ts'
import type { Bodies } from './bodies.ts'
import type { Body } from './body.ts'
import { isSame, markOf, type Held } from './held.ts'
import { isRecent } from './recent.ts'
import type { NamePair, ObjectMark } from './record.ts'
import { entryBytes, type Collection } from './scope.ts'
import type { State } from './state.ts'
import type { Composed, WritePath } from './write-path.ts'

/** Bytes of bodies written in one record. */
const stageBytes = 256 << 10

export interface ReplacementParts {
  readonly address: CollectionAddress
  /** Whose request it answers. */
  readonly reader: string
  /** Who may read a copy for all callers by it. */
  readonly holder: string | undefined
  readonly state: State
  readonly path: WritePath
  readonly bodies: Bodies
  readonly progress: ListsInProgress
  /** Notes that a list at this version is being written. */
  readonly track: (commit: Promise<unknown>, version: string) => void
}

/** An object of the list that is not stored yet. */
interface Staged {
  readonly mark: ObjectMark
  /** Absent until it is written. */
  body: Body | undefined
}

/**
 * A list in progress. Bodies of objects that differ from the collection's are written as they come;
 * one small record at the end makes the list the collection, unless that is newer by then.
 */
export class StagedReplacement implements Replacement {
  readonly #parts: ReplacementParts
  /** By their `nameKey`: what is stored already as it is stored, which most objects are. */
  readonly #listed = new Map<string, Held | Staged>()
  /** Bodies that were written for the list. */
  readonly #held: Body[] = []
  failure: StoreFailure | undefined
  #stagedBytes = 0
  #over = false

  constructor(parts: ReplacementParts) {
    this.#parts = parts
    parts.progress.add(this)
  }

  async add({ objects }: ListBatch): Promise<void> {
    this.#check()
    const { address, bodies, path } = this.#parts
    const members = this.#collection?.members
    let staged: (readonly [ApiObject, Staged])[] = []
    let bytes = 0
    for (const object of objects) {
      const key = nameKey(object)
      const member = members?.get(key)
      if (member && bodies.isHeld(address.scope, object, member)) {
        this.#listed.set(key, member)
        continue
      }
      const listed: Staged = { mark: markOf(object), body: undefined }
      this.#listed.set(key, listed)
      staged.push([object, listed])
      bytes += object.bytes.byteLength
      if (bytes < stageBytes) continue
      this.#stage(staged, bytes)
      staged = []
      bytes = 0
    }
    if (staged.length > 0) this.#stage(staged, bytes)
    await path.room()
    this.#check()
  }

  async commit(head: CollectionHead): Promise<void> {
    this.#check()
    const { address, path, track } = this.#parts
    this.#over = true
    let isSynced = true
    try {
      const commit = path.push({
        compose: () => this.#compose(head),
        bytes: 0,
        alone: true,
        durable: true,
        of: address,
        applied: (written) => {
          isSynced = written !== undefined
          this.#end()
        },
      })
      track(commit, head.resourceVersion)
      await commit
      // What it confirms may not be on the disk yet.
      if (!isSynced) await path.sync()
    } finally {
      this.#end()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#over) return
    this.#over = true
    this.#end()
  }

  get address(): CollectionAddress {
    return this.#parts.address
  }

  get reader(): string {
    return this.#parts.reader
  }

  get #collection(): Collection | undefined {
    return this.#parts.state.collection(this.#parts.address)
  }

  #check(): void {
    if (this.#over) throw new Error('the list has been committed or disposed of')
    if (this.failure) throw this.failure
  }

  #end(): void {
    this.#parts.progress.delete(this, this.#stagedBytes)
    this.#stagedBytes = 0
    for (const body of this.#held.splice(0)) body.release()
  }

  /** Throws a `StoreFailure` where the reader has too much staged. */
  #stage(staged: readonly (readonly [ApiObject, Staged])[], bytes: number): void {
    const { address, reader, bodies, path, progress } = this.#parts
    const weight = bytes + staged.length * entryBytes
    progress.stage(reader, weight)
    this.#stagedBytes += weight
    const compose = (): Composed => {
      const parts = staged.map(([object]) => bodies.stored(address.scope, object))
      return {
        record: { kind: 'bodies', scope: address.scope },
        bodies: parts.map(([each]) => each),
        marks: parts.map(([each, digest]) => path.mark(each.byteLength, digest)),
      }
    }
    const written = path.push({
      compose,
      bytes,
      of: address,
      applied: (found) => {
        for (const [at, body] of found?.bodies.entries() ?? []) {
          const listed = staged[at]?.[1]
          if (listed) listed.body = body
          if (!this.#over) this.#held.push(body.hold())
        }
      },
    })
    // `add` or `commit` throws this, too.
    written.catch((cause: unknown) => (this.failure ??= cause as StoreFailure))
  }

  /**
   * The record after which the collection holds the list; `undefined`: it does already, or it is
   * newer, by a watch or another list, or since an API server lags. Called when all earlier writes
   * have changed the state.
   */
  #compose(head: CollectionHead): Composed | undefined {
    if (this.failure) throw this.failure
    const { address, holder } = this.#parts
    const before = this.#collection
    const isOlder = before !== undefined && isNewer(before.version, head.resourceVersion)
    if (isOlder && !isNewer(head.storedBefore, head.resourceVersion)) return this.#grant()
    const objects: ObjectMark[] = []
    const placed: Body[] = []
    for (const [key, listed] of this.#listed) {
      if ('mark' in listed && listed.body) {
        objects.push(listed.mark)
        placed.push(listed.body)
      } else if ('mark' in listed || !isKept(listed, before?.members.get(key)))
        throw new StoreFailure('what the list has in common with the stored one has changed')
    }
    const removed: NamePair[] = []
    for (const [key, { namespace, name }] of before?.members ?? [])
      if (!this.#listed.has(key)) removed.push([namespace, name])
    const confirmedAt = now()
    const { gvk, extra, resourceVersion: version } = head
    const isSameList = before !== undefined && objects.length + removed.length === 0
    if (isSameList && isSameHead(before, head)) {
      before.seenAt = confirmedAt
      if (isRecent(before.confirmedAt)) return this.#grant()
    }
    return {
      record: {
        kind: 'list',
        collection: address,
        gvk,
        version,
        extra,
        confirmedAt,
        removed,
        objects,
        size: sizeAfter(before, objects, removed),
        holder,
        bodies: placed.map(({ mark }) => mark),
      },
      placed,
    }
  }

  /** Where nothing else changes. */
  #grant(): Composed | undefined {
    const { address, state, holder } = this.#parts
    const record = state.scope(address.scope)?.grantOf(textInScope(address), holder)
    return record && { record }
  }
}

function sizeAfter(
  before: Collection | undefined,
  objects: readonly ObjectMark[],
  removed: readonly NamePair[],
): number {
  const added = objects.filter(
    ([namespace, name]) => !before?.members.has(nameKey({ namespace, name })),
  )
  return (before?.members.size ?? 0) - removed.length + added.length
}

const isKept = (stored: Held, member: Held | undefined): boolean =>
  member !== undefined && isSame(stored, member)

const isSameHead = (before: Collection, next: CollectionHead): boolean =>
  before.version === next.resourceVersion &&
  before.extra === next.extra &&
  before.gvk.kind === next.gvk.kind &&
  before.gvk.version === next.gvk.version &&
  before.gvk.group === next.gvk.group

/**
 * The lists in progress, and the bytes staged for each reader. What is staged cannot be evicted,
 * and a caller that reads many lists slowly must not fill the store with it.
 */
export class ListsInProgress {
  readonly #mostStaged: (reader: string) => number
  readonly #lists = new Map<string, Set<StagedReplacement>>()
  readonly #staged = new Map<string, number>()

  constructor(mostStaged: (reader: string) => number) {
    this.#mostStaged = mostStaged
  }

  add(list: StagedReplacement): void {
    const text = textOf(list.address)
    const known = this.#lists.get(text)
    if (known) known.add(list)
    else this.#lists.set(text, new Set([list]))
  }

  delete(list: StagedReplacement, staged: number): void {
    const { reader } = list
    const text = textOf(list.address)
    const known = this.#lists.get(text)
    known?.delete(list)
    if (known?.size === 0) this.#lists.delete(text)
    const left = (this.#staged.get(reader) ?? 0) - staged
    if (left > 0) this.#staged.set(reader, left)
    else this.#staged.delete(reader)
  }

  /** Throws a `StoreFailure` where the reader has too much staged. */
  stage(reader: string, bytes: number): void {
    const staged = (this.#staged.get(reader) ?? 0) + bytes
    const most = this.#mostStaged(reader)
    if (staged > most)
      throw new StoreFailure(`the lists in progress of ${reader} take more than ${most} bytes`)
    this.#staged.set(reader, staged)
  }

  /** Lists of a collection, or all, cannot be committed any more. */
  interrupt(of: CollectionAddress | 'all', why: string): void {
    const interrupted =
      of === 'all' ? this.#lists.values() : [this.#lists.get(textOf(of)) ?? new Set()]
    for (const lists of interrupted)
      for (const list of lists) list.failure ??= new StoreFailure(why)
  }
}
