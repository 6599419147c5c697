import type { ListBatch } from '../../../api/codec/list.ts'
import { now } from '../../../base/clock.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { StoreFailure, type CollectionHead, type Replacement } from '../store.ts'
import { nameKey, partOf, textInScope, type CollectionAddress } from './address.ts'
import type { Bodies } from './bodies.ts'
import type { Body } from './body.ts'
import { markOf, isRecent } from './held.ts'
import type { ObjectMark } from './record.ts'
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
  readonly staged: StagedBytes
}

/** An object of the list. */
interface Listed {
  readonly mark: ObjectMark
  /** Absent until it is written. */
  body: Body | undefined
}

/**
 * A list in progress. Bodies of objects that differ from the collection's are written as they come;
 * one record at the end makes the list the collection, unless that is newer by then.
 */
export class StagedReplacement implements Replacement {
  readonly #parts: ReplacementParts
  /** By their `nameKey`. */
  readonly #listed = new Map<string, Listed>()
  /** Held until the end. */
  readonly #held: Body[] = []
  readonly #before: Collection | undefined
  readonly #drops: number
  readonly #misses: number
  readonly #losses: number
  #failure: StoreFailure | undefined
  #stagedBytes = 0
  #over = false
  #isEnded = false

  constructor(parts: ReplacementParts) {
    this.#parts = parts
    this.#before = this.#collection
    this.#drops = parts.state.drops
    this.#misses = parts.path.misses
    this.#losses = parts.path.losses
  }

  async add({ objects }: ListBatch): Promise<void> {
    this.#check()
    const { address, bodies, path } = this.#parts
    const members = this.#collection?.members
    let staged: (readonly [ApiObject, Listed])[] = []
    let bytes = 0
    for (const object of objects) {
      const key = nameKey(object)
      const member = members?.get(key)
      const listed: Listed = { mark: markOf(object), body: undefined }
      this.#listed.set(key, listed)
      if (member && bodies.isHeld(address.scope, object, member)) {
        this.#hold(listed, member.body)
        continue
      }
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
    const { address, path } = this.#parts
    this.#over = true
    try {
      const isWritten = await path.push({
        compose: () => this.#compose(head),
        bytes: 0,
        alone: true,
        durable: true,
        of: partOf(address),
        applied: (written) => {
          this.#end()
          return written !== undefined
        },
      })
      // What it confirms may not be on the disk yet.
      if (!isWritten) await path.sync()
    } finally {
      this.#end()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#over) return
    this.#over = true
    this.#end()
  }

  get #collection(): Collection | undefined {
    return this.#parts.state.collection(this.#parts.address)
  }

  #check(): void {
    if (this.#over) throw new Error('the list has been committed or disposed of')
    if (this.#failure) throw this.#failure
  }

  #hold(listed: Listed, body: Body): void {
    listed.body = body
    this.#held.push(body.hold())
  }

  #end(): void {
    this.#isEnded = true
    this.#parts.staged.give(this.#parts.reader, this.#stagedBytes)
    this.#stagedBytes = 0
    for (const body of this.#held.splice(0)) body.release()
  }

  /** Throws a `StoreFailure` where the reader has too much staged. */
  #stage(staged: readonly (readonly [ApiObject, Listed])[], bytes: number): void {
    const { address, reader, bodies, path } = this.#parts
    const weight = bytes + staged.length * entryBytes
    this.#parts.staged.take(reader, weight)
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
      of: partOf(address),
      applied: (found) => {
        for (const [at, body] of found?.bodies.entries() ?? []) {
          const listed = staged[at]?.[1]
          if (listed && !this.#isEnded) this.#hold(listed, body)
        }
      },
    })
    // `add` or `commit` throws this, too.
    written.catch((cause: unknown) => (this.#failure ??= cause as StoreFailure))
  }

  /**
   * The record after which the collection is the list; `undefined`: it is already, or it is newer,
   * by a watch or another list, or since an API server lags. Called when all earlier writes have
   * changed the state.
   */
  #compose(head: CollectionHead): Composed | undefined {
    if (this.#failure) throw this.#failure
    const { address, holder, path, state } = this.#parts
    const before = this.#collection
    // It may have missed a state that is later than the list.
    const hasMissed = this.#before && !before && path.misses > this.#misses
    if (hasMissed || state.drops > this.#drops)
      throw new StoreFailure('what was stored of the collection was dropped meanwhile')
    if (path.losses > this.#losses)
      throw new StoreFailure('a part of the list was written before the disk failed')
    const isOlder = before !== undefined && isNewer(before.version, head.resourceVersion)
    if (isOlder && !isNewer(head.storedBefore, head.resourceVersion)) return this.#grant()
    const confirmedAt = now()
    const isHeld = before !== undefined && this.#isHeldBy(before)
    if (isHeld && isSameHead(before, head)) {
      before.seenAt = confirmedAt
      if (isRecent(before.confirmedAt)) return this.#grant()
    }
    const { gvk, extra, resourceVersion: version } = head
    const listed = isHeld ? [] : [...this.#listed.values()]
    const placed = listed.flatMap(({ body }) => body ?? [])
    if (placed.length < listed.length) throw new StoreFailure('a part of the list is not written')
    return {
      record: {
        kind: 'list',
        collection: address,
        gvk,
        version,
        extra,
        confirmedAt,
        objects: isHeld ? undefined : listed.map(({ mark }) => mark),
        holder,
        bodies: placed.map(({ mark }) => mark),
      },
      placed,
    }
  }

  #isHeldBy({ members }: Collection): boolean {
    if (members.size !== this.#listed.size) return false
    return this.#listed.entries().every(([key, { body }]) => members.get(key)?.body === body)
  }

  /** Where nothing else changes. */
  #grant(): Composed | undefined {
    const { address, state, holder } = this.#parts
    const record = state.scope(address.scope)?.grantOf(textInScope(address), holder)
    return record && { record }
  }
}

const isSameHead = (before: Collection, next: CollectionHead): boolean =>
  before.version === next.resourceVersion &&
  before.extra === next.extra &&
  before.gvk.kind === next.gvk.kind &&
  before.gvk.version === next.gvk.version &&
  before.gvk.group === next.gvk.group

/**
 * The bytes staged for each reader. They cannot be evicted, and a caller that reads many lists
 * slowly must not fill the store with them.
 */
export class StagedBytes {
  readonly #most: (reader: string) => number
  readonly #staged = new Map<string, number>()

  constructor(most: (reader: string) => number) {
    this.#most = most
  }

  /** Throws a `StoreFailure` where the reader has too much staged. */
  take(reader: string, bytes: number): void {
    const staged = (this.#staged.get(reader) ?? 0) + bytes
    const most = this.#most(reader)
    if (staged > most)
      throw new StoreFailure(`the lists in progress of ${reader} take more than ${most} bytes`)
    this.#staged.set(reader, staged)
  }

  give(reader: string, bytes: number): void {
    const left = (this.#staged.get(reader) ?? 0) - bytes
    if (left > 0) this.#staged.set(reader, left)
    else this.#staged.delete(reader)
  }
}
