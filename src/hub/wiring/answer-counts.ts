import type { AnswerLine } from '../pipeline/trace.ts'

/** The answers that one component got to one kind of request since the start. */
export interface AnswerCount {
  readonly component: string
  readonly verb: string
  /** A resource, or the path of a request that is not about one. */
  readonly what: string
  /** By source. */
  readonly cloud: number
  readonly cache: number
  readonly hub: number
  /** Those of 400 and above. */
  readonly refused: number
  readonly last: { readonly at: number; readonly source: string; readonly code: number }
}

/** Clients choose their names and paths: beyond so many, the one longest unused is forgotten. */
export const mostKinds = 256
const mostPath = 120

/** Counts answers by component, request and source. A watch counts when it has ended. */
export class AnswerCounts {
  readonly #counts = new Map<string, AnswerCount>()

  /** `at`: in milliseconds since the epoch. */
  add({ component, verb, resource, path, source, code }: AnswerLine, at: number): void {
    const what = resource || path.slice(0, mostPath)
    const key = `${component}\0${verb}\0${what}`
    const before = this.#counts.get(key)
    const { cloud, cache, hub, refused } = before ?? none
    this.#counts.delete(key)
    this.#counts.set(key, {
      component,
      verb,
      what,
      cloud: cloud + Number(source === 'cloud'),
      cache: cache + Number(source === 'cache'),
      hub: hub + Number(source === 'hub'),
      refused: refused + Number(code >= 400),
      last: { at, source, code },
    })
    const [oldest] = this.#counts.keys()
    if (this.#counts.size > mostKinds && oldest !== undefined) this.#counts.delete(oldest)
  }

  /** The one answered last first. */
  all(): readonly AnswerCount[] {
    return [...this.#counts.values()].toReversed()
  }
}

const none = { cloud: 0, cache: 0, hub: 0, refused: 0 }
