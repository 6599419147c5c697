import type { ListBatch } from '../../../api/codec/list.ts'
import { now } from '../../../base/clock.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import {
  StoreFailure,
  type CollectionHead,
  type CollectionKey,
  type Replacement,
} from '../store.ts'
import { nameKey, partOf, scopeOf } from '../state/address.ts'
import type { Bodies } from './bodies.ts'
import { markOf, isRecent, type Body, type ObjectMark } from '../state/held.ts'
import { entryBytes, type Collection } from '../state/scope.ts'
import type { ListInProgress, State } from '../state/state.ts'
import type { Composed, WritePath } from './write-path.ts'

/** Bytes of a list that may wait to be written before it has to wait, too. */
export const highWater = 4 << 20

export interface ReplacementParts {
  readonly key: CollectionKey
  /** Whose request it answers. */
  readonly reader: string
  /** Who may read a copy for all callers by it. */
  readonly holder: string | undefined
  readonly state: State
  readonly path: WritePath
  readonly bodies: Bodies
  /**
   * Bytes that the lists in progress of the reader may take together: they cannot be evicted, and a
   * caller that reads many lists slowly must not fill the store with them.
   */
  readonly mostStaged: number
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
export class StagedReplacement implements Replacement, ListInProgress {
  readonly parts: ReplacementParts
  /** By their `nameKey`. */
  readonly #listed = new Map<string, Listed>()
  #failure: StoreFailure | undefined
  stagedBytes = 0
  #waitingBytes = 0

  constructor(parts: ReplacementParts) {
    this.parts = parts
    parts.state.lists.add(this)
  }

  *bodies(): Iterable<Body> {
    for (const { body } of this.#listed.values()) if (body) yield body
  }

  async add({ objects }: ListBatch): Promise<void> {
    this.#check()
    const { key: of, bodies } = this.parts
    const members = this.#collection?.members
    const staged: (readonly [ApiObject, Listed])[] = []
    let bytes = 0
    for (const object of objects) {
      const key = nameKey(object)
      const member = members?.get(key)
      const isHeld = member && bodies.isHeld(of, object, member)
      const listed: Listed = { mark: markOf(object), body: isHeld ? member.body : undefined }
      this.#listed.set(key, listed)
      if (isHeld) continue
      staged.push([object, listed])
      bytes += object.bytes.byteLength
    }
    if (staged.length > 0) await this.#stage(staged, bytes)
  }

  async commit(head: CollectionHead): Promise<void> {
    this.#check()
    const { key, path, state } = this.parts
    try {
      const written = await path.push({
        compose: () => this.#compose(head),
        alone: true,
        durable: true,
        missed: () => ({ kind: 'evict', parts: [partOf(key)], version: head.resourceVersion }),
      })
      // What it confirms may not be on the disk yet.
      if (!written) await path.sync()
    } finally {
      state.lists.delete(this)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.parts.state.lists.delete(this)
  }

  get #collection(): Collection | undefined {
    return this.parts.state.collection(this.parts.key)
  }

  #check(): void {
    if (this.#failure) throw this.#failure
    if (!this.parts.state.lists.has(this))
      throw new StoreFailure('what was stored of the collection was removed meanwhile')
  }

  /** Resolves when more may come. */
  async #stage(staged: readonly (readonly [ApiObject, Listed])[], bytes: number): Promise<void> {
    this.#check()
    const { key, reader, bodies, path, state, mostStaged } = this.parts
    const weight = bytes + staged.length * entryBytes
    const own = [...state.lists].filter((each) => each.parts.reader === reader)
    if (own.reduce((sum, each) => sum + each.stagedBytes, weight) > mostStaged)
      throw new StoreFailure(
        `the lists in progress of ${reader} take more than ${mostStaged} bytes`,
      )
    this.stagedBytes += weight
    this.#waitingBytes += bytes
    const written = path.push({
      compose: () => ({
        record: { kind: 'bodies', scope: scopeOf(key) },
        bodies: staged.map(([object]) => bodies.stored(key, object)),
      }),
      bytes,
      missed: () => ({ kind: 'evict', parts: [partOf(key)] }),
    })
    written.then(
      (found) => {
        this.#waitingBytes -= bytes
        staged.forEach(([, listed], at) => (listed.body = found?.bodies[at]))
      },
      // `add` or `commit` throws this, too.
      (cause: unknown) => (this.#failure ??= cause as StoreFailure),
    )
    if (this.#waitingBytes >= highWater) await written
  }

  /**
   * The record after which the collection is the list; `undefined`: it is already, or it is newer,
   * by a watch or another list, or since an API server lags. Called when all earlier writes have
   * changed the state.
   */
  #compose(head: CollectionHead): Composed | undefined {
    this.#check()
    const { key, holder, state } = this.parts
    const before = this.#collection
    const isOlder = before !== undefined && isNewer(before.version, head.resourceVersion)
    if (isOlder && !isNewer(head.storedBefore, head.resourceVersion)) return this.#given(before)
    const confirmedAt = now()
    // A list brings back what a get of any age did not find: then it names its objects.
    const forgotten = [...(state.scope(key)?.tombstones ?? [])]
    const isBack = forgotten.some((each) => this.#listed.has(each))
    const isHeld = before !== undefined && !isBack && this.#isHeldBy(before)
    if (isHeld && isSameHead(before, head)) {
      before.seenAt = confirmedAt
      if (isRecent(before.confirmedAt)) return this.#given(before)
    }
    const { gvk, extra, resourceVersion: version } = head
    const listed = isHeld ? [] : [...this.#listed.values()]
    const placed = listed.flatMap(({ body }) => body ?? [])
    if (placed.length < listed.length)
      throw new StoreFailure('a part of the list is not on the disk')
    return {
      record: {
        kind: 'list',
        collection: key,
        gvk,
        version,
        extra,
        confirmedAt,
        objects: isHeld ? undefined : listed.map(({ mark }) => mark),
        holder,
      },
      placed,
    }
  }

  #isHeldBy({ members }: Collection): boolean {
    if (members.size !== this.#listed.size) return false
    for (const [key, { body }] of this.#listed) if (members.get(key)?.body !== body) return false
    return true
  }

  /** The record where nothing changes but who may read it. */
  #given({ holders, gvk, version, extra, seenAt: confirmedAt }: Collection): Composed | undefined {
    const { key: collection, holder } = this.parts
    if (holder === undefined || holders.has(holder)) return undefined
    return { record: { kind: 'list', collection, gvk, version, extra, confirmedAt, holder } }
  }
}

const isSameHead = (before: Collection, next: CollectionHead): boolean =>
  before.version === next.resourceVersion &&
  before.extra === next.extra &&
  before.gvk.kind === next.gvk.kind &&
  before.gvk.version === next.gvk.version &&
  before.gvk.group === next.gvk.group
