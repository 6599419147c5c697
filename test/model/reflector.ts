import { text } from 'node:stream/consumers'
import type { Client } from '../kit/client.ts'
import type { ClientWatch } from '../kit/client-watch.ts'
import { Condition } from '../kit/condition.ts'
import type { Observations } from './observations.ts'
import {
  keyOf,
  modelObject,
  pathOf,
  shown,
  type Collection,
  type ModelObject,
} from './collection.ts'
import { Finding } from './finding.ts'
import type { History } from './history.ts'
import { Stream, type Start } from './stream.ts'

interface Open {
  readonly watching: ClientWatch
  readonly stream: Stream
  /** The hub records what it shows. */
  readonly isKept: boolean
  /** The newest version when it was requested; `undefined` for one without initial events. */
  readonly initialFrom: number | undefined
}

/**
 * A client's copy of a collection, kept as a reflector does: by a list or the initial events of a
 * watch, then by events. Each event is checked as it is received.
 */
export class ModelReflector {
  readonly collection: Collection
  readonly #history: History
  readonly #audience: Observations
  readonly #say: (line: string) => void
  readonly #condition = new Condition()
  #objects = new Map<string, ModelObject>()
  #open: Open | undefined
  #failure: unknown
  /** The version to go on from; `undefined` before the first list. */
  version: number | undefined

  constructor(
    collection: Collection,
    history: History,
    audience: Observations,
    say: (line: string) => void,
  ) {
    this.collection = collection
    this.#history = history
    this.#audience = audience
    this.#say = say
  }

  get isOpen(): boolean {
    return this.#open !== undefined
  }

  get state(): string[] {
    return [...this.#objects.values()].map(shown).toSorted()
  }

  /** What a list has shown whole. */
  take(version: number): void {
    this.leave()
    this.#objects = this.#history.objects(this.collection, version)
    this.version = version
  }

  leave(): void {
    this.#open?.watching.hangUp()
    this.#ended()
  }

  #ended(): void {
    const { initialFrom, stream } = this.#open ?? {}
    if (initialFrom !== undefined && stream?.reached === undefined)
      this.#history.left(this.collection, initialFrom)
    this.#open = undefined
  }

  /** Throws the failure that a watch has found. */
  throwIfAny(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  /**
   * Opens a watch with these parameters. Resolves with the status of its head, or `undefined`
   * without an answer.
   */
  async watch(
    client: Client,
    start: Start,
    query: Record<string, string>,
    isKept: boolean,
  ): Promise<number | undefined> {
    this.leave()
    const initialFrom = 'sendInitialEvents' in query ? this.#history.newest : undefined
    let watching: ClientWatch
    try {
      watching = await client.watch(pathOf(this.collection), query)
    } catch {
      if (initialFrom !== undefined) this.#history.left(this.collection, initialFrom)
      return undefined
    }
    if (watching.status !== 200) {
      this.#say(
        `  ${pathOf(this.collection)}: ${watching.status} ${await text(watching.answer).catch(String)}`,
      )
      return watching.status
    }
    const stream = new Stream(this.#history, this.collection, start)
    const open: Open = { watching, stream, isKept, initialFrom }
    this.#open = open
    this.#read(open).catch((failure: unknown) => {
      this.#failure ??= failure
      this.#condition.changed()
    })
    return 200
  }

  async #read(open: Open): Promise<void> {
    const { watching, stream, isKept } = open
    // Initial events replace the copy once they are complete.
    let initial: Map<string, ModelObject> | undefined =
      stream.reached === undefined ? new Map() : undefined
    const events = watching[Symbol.asyncIterator]()
    for (;;) {
      const event = await events.next().then(
        ({ value }) => value || undefined,
        () => undefined,
      )
      if (this.#open !== open) return
      if (event === undefined) {
        this.#ended()
        this.#condition.changed()
        return
      }
      const object = modelObject(event.object)
      this.#say(
        `  ${pathOf(this.collection)}: ${event.type} ${event.type === 'ERROR' ? '' : shown(object)}`,
      )
      stream.see(event)
      const objects = initial ?? this.#objects
      if (event.type === 'ADDED' || event.type === 'MODIFIED') objects.set(keyOf(object), object)
      if (event.type === 'DELETED') objects.delete(keyOf(object))
      if (initial !== undefined && stream.reached !== undefined) {
        this.#objects = initial
        initial = undefined
        this.#audience.showList(this.collection, stream.reached, isKept)
      }
      if (initial === undefined && event.type !== 'ERROR') {
        this.version = stream.reached
        if (event.type === 'BOOKMARK')
          this.#audience.reach(this.collection, object.version, { isKept })
        else this.#audience.showChange(this.collection, event.type, object, isKept)
      }
      if (stream.expired) this.version = undefined
      this.#condition.changed()
    }
  }

  /**
   * Whether a watch is open that has delivered all events up to `version`. Where a list may have
   * taken the place of its next events, this ceases to be so if they come all the same.
   */
  hasReached(version: number): boolean {
    return this.#open?.stream.hasReached(version) === true
  }

  /** Resolves when the watch, if any, has delivered all events up to `version`, or has ended. */
  async caughtUp(version: number): Promise<void> {
    const open = this.#open
    await this.#condition.until(
      () =>
        this.#failure !== undefined ||
        this.#open !== open ||
        open === undefined ||
        open.stream.hasReached(version),
    )
    this.throwIfAny()
  }

  /** Resolves when the watch has delivered its initial events, or has ended. */
  async begun(): Promise<void> {
    const open = this.#open
    await this.#condition.until(
      () =>
        this.#failure !== undefined ||
        this.#open !== open ||
        open === undefined ||
        open.stream.reached !== undefined,
    )
    this.throwIfAny()
  }

  /** Throws a `Finding` where its copy is not what the cloud has. */
  checkInStep(): void {
    const truth = this.#history.state(this.collection, this.#history.newest)
    if (truth.join() === this.state.join()) return
    throw new Finding(
      `${pathOf(this.collection)} is not in step at ${this.version}: ${this.state.join(', ')} where the cloud has ${truth.join(', ')}`,
    )
  }
}
