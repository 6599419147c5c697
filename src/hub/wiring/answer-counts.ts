import { isRead } from '../../api/request/request-info.ts'
import type { AnswerLine } from '../pipeline/trace.ts'

/** Numbers of answers. */
export interface Answers {
  /** By source. */
  readonly cloud: number
  readonly cache: number
  readonly hub: number
  /** Those of 400 and above that a client does not expect. */
  readonly refused: number
}

/** The answers that one component got to one kind of request since the start. */
export interface AnswerCount extends Answers {
  readonly component: string
  readonly verb: string
  /** A resource, or the path of a request that is not about one. */
  readonly what: string
  readonly last: { readonly at: number; readonly source: string; readonly code: number }
}

/** Clients choose their names and paths: beyond so many, the one longest unused is forgotten. */
export const mostKinds = 256
const mostPath = 120

/** Counts answers by component, request and source. A watch counts when it has ended. */
export class AnswerCounts {
  readonly #counts = new Map<string, Used>()
  #uses = 0

  /** `at`: in milliseconds since the epoch. */
  add(line: AnswerLine, at: number): void {
    const { component, verb, resource, path, source, code } = line
    const what = resource || path.slice(0, mostPath)
    const key = `${component}\0${verb}\0${what}`
    let count = this.#counts.get(key)
    if (count === undefined) {
      if (this.#counts.size >= mostKinds) this.#forgetOne()
      count = { component, verb, what, ...none, last: { at, source, code }, use: 0 }
      this.#counts.set(key, count)
    }
    const { last } = count
    last.at = at
    last.source = source
    last.code = code
    count.use = this.#uses++
    if (source === 'cloud' || source === 'cache' || source === 'hub') count[source] += 1
    if (isRefusal(line)) count.refused += 1
  }

  #forgetOne(): void {
    let oldest: [key: string, count: Used] | undefined
    for (const each of this.#counts) if (!oldest || each[1].use < oldest[1].use) oldest = each
    if (oldest) this.#counts.delete(oldest[0])
  }

  /** The one answered last first. */
  all(): readonly AnswerCount[] {
    return [...this.#counts.values()]
      .toSorted((one, other) => other.use - one.use)
      .map(({ use: _use, ...count }) => ({ ...count, last: { ...count.last } }))
  }
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

/** Changed with each answer, as a node gives many; `use` numbers the last one. */
interface Used extends Mutable<Omit<AnswerCount, 'last'>> {
  readonly last: Mutable<AnswerCount['last']>
  use: number
}

/**
 * Whether a client does not expect to be answered so. A read of what does not exist, a conflict,
 * and a watch that begins too far back belong to how clients work: a kubelet reads its lease before
 * it creates it.
 */
export const isRefusal = ({ verb, code }: Pick<AnswerLine, 'verb' | 'code'>): boolean =>
  code >= 400 && code !== 409 && code !== 410 && !(code === 404 && isRead({ verb }))

const none: Answers = { cloud: 0, cache: 0, hub: 0, refused: 0 }
