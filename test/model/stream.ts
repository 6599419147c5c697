import type { JsonObject } from '../../src/api/kube/json.ts'
import { at } from '../kit/client.ts'
import type { ReceivedEvent } from '../kit/client-watch.ts'
import { modelObject, shown, type Collection } from './collection.ts'
import { Finding } from './finding.ts'
import type { History, WatchChange } from './history.ts'

/** The start of a watch. */
export type Start =
  /** Changes after this version. */
  | { readonly after: number }
  /** The state at some version from `from` on, then the changes after it. */
  | { readonly from: number }

/** How an event reads: what it is about, and the version that it takes its reader to. */
interface Event {
  readonly type: string
  readonly version: number
  readonly text: string
}

const endsInitial = (object: JsonObject): boolean =>
  at(object, 'metadata', 'annotations', 'k8s.io/initial-events-end') === 'true'

/**
 * The events of a watch so far, checked against what it may deliver: all changes after its start,
 * in order, without gaps or repetition. Where a list took the place of the changes after the
 * version that its reader has reached, the watch goes on if the collection is as it was, and what
 * has come and gone meanwhile is not delivered.
 */
export class Stream {
  readonly #history: History
  readonly #collection: Collection
  readonly #start: Start
  readonly #events: Event[] = []
  /** The version that its reader has reached; `undefined` while unknown. */
  #reached: number | undefined
  #expired = false

  constructor(history: History, collection: Collection, start: Start) {
    this.#history = history
    this.#collection = collection
    this.#start = start
    if ('after' in start) this.#reached = start.after
  }

  /** The version that its reader would go on from. */
  get reached(): number | undefined {
    return this.#reached
  }

  /** It ended with 410. */
  get expired(): boolean {
    return this.#expired
  }

  /** Throws a `Finding` for an event that the watch must not deliver. */
  see({ type, object }: ReceivedEvent): void {
    if (this.#expired) throw new Finding(`${type} after an ERROR`)
    if (type === 'ERROR') {
      if (object['code'] !== 410) throw new Finding(`ERROR ${JSON.stringify(object)}`)
      this.#expired = true
      return
    }
    const model = modelObject(object)
    if (!this.#history.isIssued(model.version)) {
      throw new Finding(`${type} at ${model.version}, which was never issued`)
    }
    const isBookmark = type === 'BOOKMARK'
    this.#events.push({ type, version: model.version, text: isBookmark ? '' : shown(model) })
    if (this.#starts().length === 0) {
      throw new Finding(
        `no watch ${JSON.stringify(this.#start)} tells ${this.#events.map(described).join(', ')}; sent from there: ${this.#told()}`,
      )
    }
    if ('after' in this.#start || (isBookmark && endsInitial(object))) this.#reached = model.version
    else if (this.#reached !== undefined) this.#reached = model.version
  }

  /** Whether nothing up to `version` is still to come. */
  hasReached(version: number): boolean {
    return this.#starts().some((start) => this.#rest(start, version) === 0)
  }

  /** The possible start versions, given its events. */
  #starts(): number[] {
    if ('after' in this.#start) {
      return this.#agrees(this.#start.after, false) ? [this.#start.after] : []
    }
    const starts: number[] = []
    for (let version = this.#start.from; version <= this.#history.newest; version++) {
      if (this.#agrees(version, true)) starts.push(version)
    }
    return starts
  }

  #agrees(start: number, initial: boolean): boolean {
    return this.#follow(start, initial) !== undefined
  }

  #rest(start: number, version: number): number {
    const followed = this.#follow(start, 'from' in this.#start)
    if (!followed || followed.missing > 0) return 1
    const { at: reached } = followed
    const skippable = this.#history.unchangedUntil(this.#collection, reached, version)
    return this.#history
      .after(this.#collection, skippable)
      .filter(({ object }) => object.version <= version).length
  }

  /** Removes changes that a watch need not deliver before this event. */
  #skip(changes: WatchChange[], reached: number, { type, version }: Event): void {
    const listed = type === 'BOOKMARK' ? version : version - 1
    const [first] = changes
    if (first === undefined || first.object.version > listed) return
    const skippable = this.#history.unchangedUntil(this.#collection, reached, listed)
    const next = changes.findIndex(({ object }) => object.version > skippable)
    changes.splice(0, next < 0 ? changes.length : next)
  }

  /**
   * The version of a watch that began there, and how many of its initial events are missing;
   * `undefined` if its events contradict that start.
   */
  #follow(start: number, initial: boolean): { at: number; missing: number } | undefined {
    const first = new Set(initial ? this.#history.state(this.#collection, start) : [])
    const changes = this.#history.after(this.#collection, start)
    let reached = start
    for (const event of this.#events) {
      const { type, version, text } = event
      if (first.size === 0) this.#skip(changes, reached, event)
      if (type === 'BOOKMARK') {
        const [next] = changes
        if (first.size > 0 || version < reached) return undefined
        if (next && next.object.version <= version) return undefined
        reached = version
      } else if (first.size > 0) {
        if (type !== 'ADDED' || !first.delete(text)) return undefined
      } else {
        const next = changes.shift()
        if (next?.type !== type || shown(next.object) !== text) return undefined
        reached = version
      }
    }
    return { at: reached, missing: first.size }
  }

  #told(): string {
    const from = 'after' in this.#start ? this.#start.after : this.#start.from
    const told = this.#history.after(this.#collection, from)
    const state = 'after' in this.#start ? [] : this.#history.state(this.#collection, from)
    return [...state, ...told.map(({ type, object }) => `${type} ${shown(object)}`)].join(', ')
  }
}

const described = ({ type, version, text }: Event): string =>
  text === '' ? `${type} ${version}` : `${type} ${text}`
