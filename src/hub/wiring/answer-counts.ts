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

const minuteMs = 60_000
const minutesShown = 60

/**
 * Counts answers by component, request and source, and by the minute. A watch counts when it has
 * ended.
 */
export class AnswerCounts {
  readonly #counts = new Map<string, AnswerCount>()
  /** By minute since the epoch, in the order in which they were counted. */
  readonly #minutes = new Map<number, Answers>()

  /** `at`: in milliseconds since the epoch. */
  add(line: AnswerLine, at: number): void {
    const { component, verb, resource, path, source, code } = line
    const what = resource || path.slice(0, mostPath)
    const key = `${component}\0${verb}\0${what}`
    const before = this.#counts.get(key)
    this.#counts.delete(key)
    this.#counts.set(key, {
      component,
      verb,
      what,
      ...plus(before, line),
      last: { at, source, code },
    })
    const [oldest] = this.#counts.keys()
    if (this.#counts.size > mostKinds && oldest !== undefined) this.#counts.delete(oldest)
    const minute = Math.floor(at / minuteMs)
    this.#minutes.set(minute, plus(this.#minutes.get(minute), line))
    const [first] = this.#minutes.keys()
    if (this.#minutes.size > minutesShown && first !== undefined) this.#minutes.delete(first)
  }

  /** The last hour: a number for each minute, the present one last. */
  minutes(at: number): Readonly<Record<keyof Answers, readonly number[]>> {
    const first = Math.floor(at / minuteMs) - minutesShown + 1
    const of = (name: keyof Answers): readonly number[] =>
      Array.from({ length: minutesShown }, (_, i) => this.#minutes.get(first + i)?.[name] ?? 0)
    return { cloud: of('cloud'), cache: of('cache'), hub: of('hub'), refused: of('refused') }
  }

  /** The one answered last first. */
  all(): readonly AnswerCount[] {
    return [...this.#counts.values()].toReversed()
  }
}

const plus = (
  { cloud, cache, hub, refused }: Answers = none,
  { source, verb, code }: Pick<AnswerLine, 'source' | 'verb' | 'code'>,
): Answers => ({
  cloud: cloud + Number(source === 'cloud'),
  cache: cache + Number(source === 'cache'),
  hub: hub + Number(source === 'hub'),
  refused: refused + Number(code >= 400 && !isExpected(verb, code)),
})

/**
 * A read of what does not exist, a conflict, and a watch that begins too far back belong to how
 * clients work: a kubelet reads its lease before it creates it.
 */
const isExpected = (verb: string, code: number): boolean =>
  code === 409 || code === 410 || (code === 404 && isRead({ verb }))

const none: Answers = { cloud: 0, cache: 0, hub: 0, refused: 0 }
