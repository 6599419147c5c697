import type { JsonObject } from '../../src/api/kube/json.ts'
import { nameOf, objectOf, type Client, type Watching } from '../kit/client.ts'
import { Condition } from '../kit/condition.ts'
import { stateOf, type ResourceHistory } from './resource-history.ts'

/** A client was shown something wrong. */
export class Violation extends Error {}

/**
 * A client that lists and watches, checks every answer against the history, and remembers the
 * version it was shown.
 */
export class CheckingClient {
  readonly path: string
  readonly #history: ResourceHistory
  readonly #condition = new Condition()
  #watching: Watching | undefined
  #following: Promise<void> | undefined
  /** The newest version that it was shown; 0: it has no list. */
  version = 0
  expired = false
  wrong: Error | undefined
  /** Called whenever it is shown something. */
  onShown: ((what: string, version: number) => void) | undefined

  constructor(path: string, history: ResourceHistory) {
    this.path = path
    this.#history = history
  }

  /**
   * Asks for the list. Rejects where it breaks off or is refused, with a `Wrong` where it is not as
   * it was at its version.
   */
  async list(client: Client): Promise<void> {
    const answer = await client.get(this.path)
    if (answer.status !== 200) throw new Error(`${this.path}: ${answer.status}`)
    const list = objectOf(answer)
    const version = Number((list['metadata'] as JsonObject)['resourceVersion'])
    const expected = [...this.#history.at(version)].map(([name, state]) => `${name}: ${state}`)
    const items = (list['items'] ?? []) as JsonObject[]
    const shown = items.map((item) => `${nameOf(item).split('/')[1]}: ${stateOf(item)}`)
    if (expected.sort().join('\n') !== shown.sort().join('\n'))
      throw new Violation(
        `${this.path} at ${version} is\n${shown.join('\n')}\nnot\n${expected.join('\n')}`,
      )
    if (version < this.version)
      throw new Violation(`${this.path} is at ${version}, and was at ${this.version}`)
    this.version = version
    this.expired = false
    this.onShown?.('LIST', version)
  }

  /**
   * Goes on from where it was, in the background, for as long as the watch lives. Rejects where
   * there is no watch.
   */
  async watch(client: Client): Promise<void> {
    const watching = await client.watch(this.path, {
      resourceVersion: String(this.version),
      allowWatchBookmarks: 'true',
    })
    if (watching.status !== 200) {
      this.expired = watching.status === 410
      watching.hangUp()
      if (!this.expired) throw new Error(`watch of ${this.path}: ${watching.status}`)
      return
    }
    this.#watching = watching
    this.#following = this.#follow(watching)
  }

  async #follow(watching: Watching): Promise<void> {
    try {
      for await (const event of watching) {
        this.#hear(event.type, event.object)
        this.#condition.changed()
        if (this.expired) return
      }
    } catch (cause) {
      // The connection breaks when the hub dies, which is what this tests.
      if (cause instanceof Violation) this.wrong = cause
    } finally {
      watching.hangUp()
      if (this.#watching === watching) this.#watching = undefined
      this.#condition.changed()
    }
  }

  #hear(type: string, object: JsonObject): void {
    if (type === 'ERROR') {
      if (object['code'] !== 410) throw new Violation(`${this.path}: ${JSON.stringify(object)}`)
      this.expired = true
      return
    }
    const version = Number((object['metadata'] as JsonObject)['resourceVersion'])
    const missed = this.#history.between(this.version, version)
    if (type === 'BOOKMARK') {
      if (missed.length > 0 || version < this.version)
        throw new Violation(
          `${this.path}: a bookmark at ${version} after ${this.version} leaves out what happened`,
        )
    } else {
      const [expected] = missed
      const right =
        missed.length === 1 &&
        expected?.type === type &&
        expected.version === version &&
        `default/${expected.name}` === nameOf(object) &&
        (type === 'DELETED' || expected.state === stateOf(object))
      if (!right)
        throw new Violation(
          `${this.path}: after ${this.version} came ${type} ${nameOf(object)} at ${version}, expected ${JSON.stringify(missed)}`,
        )
    }
    this.version = version
    this.onShown?.(type, version)
  }

  /**
   * Resolves when it was shown everything up to `version`, or will not be: its watch is over, it
   * has to list again, or something is wrong.
   */
  async until(version: number): Promise<void> {
    await this.#condition.until(
      () =>
        this.version >= version ||
        this.expired ||
        this.wrong !== undefined ||
        this.#watching === undefined,
    )
  }

  async hangUp(): Promise<void> {
    this.#watching?.hangUp()
    await this.#following
  }
}
