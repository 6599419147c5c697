import type { Logger } from 'pino'
import { lruCache } from '../../base/lru-cache.ts'
import { RecentItems } from '../../base/recent-items.ts'
import { RepeatLimiter } from '../../base/repeat-limiter.ts'
import type { AnsweredRequest, AnswerLine } from '../pipeline/trace.ts'
import { isRefusal, LastHour, type Answers } from './last-hour.ts'
import { entryOf, requestFilter, type RequestEntry } from './request-entry.ts'

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

export const mostRequests = 512

/** A refused kubelet retries all the time. */
const togetherMs = 60_000

/** Clients choose their names: beyond so many in an interval, the rest are logged together. */
const mostLogged = 16

/** How the hub itself refuses: unknown caller, not allowed, a foreign Host or Origin, overload. */
const refusals = new Set([401, 403, 421, 429])

/**
 * The answers that clients got, in the log, by component and kind of request, by the minute, and
 * the last ones whole. A watch counts when it has ended.
 */
export class AnswerRecord implements Disposable {
  readonly hour = new LastHour()
  readonly #log: Logger
  readonly #limited: RepeatLimiter<AnswerLine>
  readonly #counts = lruCache<string, Counted>(mostKinds)
  readonly #recent = new RecentItems<AnsweredRequest>(mostRequests)

  /** `together`: for so many milliseconds failures and refusals are logged together. */
  constructor(log: Logger, together = togetherMs) {
    this.#log = log
    this.#limited = new RepeatLimiter(together, (line, times) => {
      const fields = { ...rounded(line), ...(times > 1 && { times }) }
      if (line.code >= 500) log.info(fields, 'a request failed')
      else log.warn(fields, 'a request was refused')
    })
  }

  add(answered: AnsweredRequest): void {
    this.log(answered)
    this.#count(answered)
    this.hour.add(answered)
    this.#recent.add(answered)
  }

  /**
   * Logs an answer at debug. Besides it logs the requests that the hub refused, as warnings, and at
   * info the answers of 500 and above: the first of each code, source and component at once, and
   * then at most once a minute, with the latest one and the number of `times`.
   */
  log(line: AnswerLine): void {
    const { code, source, component } = line
    if (this.#log.isLevelEnabled('debug')) this.#log.debug(rounded(line), 'answered')
    if (code >= 500 || (source === 'hub' && refusals.has(code))) {
      const key = `${code} ${source} ${component}`
      const isFull = !this.#limited.has(key) && this.#limited.size >= mostLogged
      this.#limited.add(isFull ? `${code} ${source}` : key, line)
    }
  }

  #count(answered: AnsweredRequest): void {
    const { component, verb, resource, path, source, code, at } = answered
    const what = resource || path.slice(0, mostPath)
    const key = `${component}\0${verb}\0${what}`
    let count = this.#counts.get(key)
    if (!count) {
      count = { component, verb, what, ...none, last: { at, source, code } }
      this.#counts.set(key, count)
    }
    const { last } = count
    last.at = at
    last.source = source
    last.code = code
    if (source === 'cloud' || source === 'cache' || source === 'hub') count[source] += 1
    if (isRefusal(answered)) count.refused += 1
  }

  /** The one answered last first. */
  get counts(): readonly AnswerCount[] {
    return [...this.#counts.values()].map((count) => ({ ...count, last: { ...count.last } }))
  }

  /** The last ones that a query names. Throws where it has a parameter that selects nothing. */
  select(query: URLSearchParams): Pick<RecentItems<RequestEntry>, 'items' | 'follow'> {
    const fits = requestFilter(query)
    const chosen = (answered: readonly AnsweredRequest[]): RequestEntry[] =>
      answered.map(entryOf).filter(fits)
    return {
      items: chosen(this.#recent.items),
      follow: (signal) => some(this.#recent.follow(signal), chosen),
    }
  }

  /** Logs what is still pending. */
  [Symbol.dispose](): void {
    this.#limited[Symbol.dispose]()
  }
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

/** Changed with each answer, as a node gives many. */
interface Counted extends Mutable<Omit<AnswerCount, 'last'>> {
  readonly last: Mutable<AnswerCount['last']>
}

const none: Answers = { cloud: 0, cache: 0, hub: 0, refused: 0 }

/** The fields that are logged; rounds to microseconds. */
function rounded(line: AnswerLine): AnswerLine {
  const { id, method, path, verb, resource, component, code, source, why } = line
  const ms = Math.round(line.ms * 1000) / 1000
  const logged = { id, method, path, verb, resource, component, code, source, ms }
  return why === undefined ? logged : { ...logged, why }
}

async function* some<T, Chosen>(
  batches: AsyncIterable<readonly T[]>,
  chosen: (batch: readonly T[]) => readonly Chosen[],
): AsyncGenerator<readonly Chosen[]> {
  for await (const batch of batches) {
    const fitting = chosen(batch)
    if (fitting.length > 0) yield fitting
  }
}
