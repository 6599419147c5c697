import { createHistogram } from 'node:perf_hooks'
import type { Logger } from 'pino'
import { lruCache } from '../../base/lru-cache.ts'
import { RecentItems } from '../../base/recent-items.ts'
import { RepeatLimiter } from '../../base/repeat-limiter.ts'
import type { AnsweredRequest, AnswerLine } from '../pipeline/trace.ts'
import { entryOf, requestFilter, type RequestEntry } from './request-entry.ts'
import { every, now } from '../../base/clock.ts'
import { isRead } from '../../api/request/request-info.ts'

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
    const recent = this.#recent
    return {
      items: chosen(recent.items),
      follow: async function* (signal) {
        for await (const batch of recent.follow(signal)) {
          const fitting = chosen(batch)
          if (fitting.length > 0) yield fitting
        }
      },
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

/** Numbers of answers. */
export interface Answers {
  /** By source. */
  readonly cloud: number
  readonly cache: number
  readonly hub: number
  /** Those of 400 and above that a client does not expect. */
  readonly refused: number
}

/**
 * Whether a client does not expect to be answered so. A read of what does not exist, a conflict,
 * and a watch that begins too far back belong to how clients work: a kubelet reads its lease before
 * it creates it.
 */
const isRefusal = ({ verb, code }: Pick<AnswerLine, 'verb' | 'code'>): boolean =>
  code >= 400 && code !== 409 && code !== 410 && !(code === 404 && isRead({ verb }))

/** What may become full. */
const gaugeNames = ['seats', 'connections', 'secureConnections', 'memory', 'cache'] as const

type GaugeName = (typeof gaugeNames)[number]

export interface Gauge {
  readonly current: () => number
  /** The most since the last call; absent: samples of `current` are enough. */
  readonly most?: () => number
  readonly limit: () => number
}

interface Measured {
  readonly online: () => boolean | undefined
  readonly gauges: Readonly<Record<GaugeName, Gauge>>
}

interface Saturation {
  readonly current: number
  /** Of the last hour. */
  readonly most: number
  readonly limit: number
}

type Known<T> = readonly (T | null)[]

/**
 * The last hour: an item for each minute, the present one last. `null`: nothing is known of it, as
 * from before the start.
 */
export interface Minutes extends Readonly<Record<keyof Answers, readonly number[]>> {
  /** Whether the hub was online the whole minute, as far as samples show. */
  readonly online: Known<boolean>
  /** The time that 99 % of the short requests took at most, to a tenth. */
  readonly p99Ms: Known<number>
  /** The most, in bytes. */
  readonly memoryBytes: Known<number>
  readonly cacheBytes: Known<number>
}

const minuteMs = 60_000
const shown = 60

/** The interval of samples; a change of the link is a sample, too. */
export const sampleMs = 15_000

/** What is known of one minute. */
interface Minute extends Record<keyof Answers, number> {
  /** Since the epoch. */
  readonly number: number
  online: boolean | null
  p99Ms: number
  readonly most: Record<GaugeName, number>
}

const minuteOf = (number: number): Minute => ({
  number,
  ...none,
  online: null,
  p99Ms: 0,
  most: { seats: 0, connections: 0, secureConnections: 0, memory: 0, cache: 0 },
})

/** Answers, link and load by the minute. */
export class LastHour {
  /** The present one last. */
  readonly #minutes: Minute[] = []
  /** Of the short requests of the present minute, in microseconds. */
  readonly #durations = createHistogram({ figures: 2 })
  #measured: Measured | undefined

  /** Takes samples from now on, until disposed. */
  measure(measured: Measured): Disposable {
    this.#measured = measured
    this.sample()
    return every(sampleMs, () => this.sample())
  }

  sample(): void {
    if (!this.#measured) return
    const { online, gauges } = this.#measured
    const minute = this.#minuteAt(now())
    for (const name of gaugeNames) {
      const { current, most = current } = gauges[name]
      minute.most[name] = Math.max(minute.most[name], most())
    }
    const isOnline = online()
    if (isOnline !== undefined) minute.online = isOnline && minute.online !== false
  }

  add(line: Pick<AnsweredRequest, 'source' | 'verb' | 'code' | 'ms' | 'isShort' | 'at'>): void {
    const { source, ms, isShort, at } = line
    const minute = this.#minuteAt(at)
    if (source === 'cloud' || source === 'cache' || source === 'hub') minute[source] += 1
    if (isRefusal(line)) minute.refused += 1
    if (isShort) this.#durations.record(Math.max(1, Math.round(ms * 1000)))
  }

  #minuteAt(at: number): Minute {
    const number = Math.floor(at / minuteMs)
    const present = this.#minutes.at(-1)
    if (present?.number === number) return present
    if (present) present.p99Ms = this.#p99Ms
    this.#durations.reset()
    const next = minuteOf(number)
    if (this.#minutes.push(next) > shown) this.#minutes.shift()
    return next
  }

  minutes(at: number): Minutes {
    const present = this.#minutes.at(-1)
    if (present) present.p99Ms = this.#p99Ms
    const hour = this.#hourAt(at)
    return {
      cloud: hour.map(({ cloud }) => cloud),
      cache: hour.map(({ cache }) => cache),
      hub: hour.map(({ hub }) => hub),
      refused: hour.map(({ refused }) => refused),
      online: hour.map(({ online }) => online),
      p99Ms: hour.map(({ p99Ms }) => p99Ms || null),
      memoryBytes: hour.map(({ most }) => most.memory || null),
      cacheBytes: hour.map(({ most }) => most.cache || null),
    }
  }

  /** 0 where there are none. */
  get #p99Ms(): number {
    return Math.round(this.#durations.percentile(99) / 100) / 10
  }

  #hourAt(at: number): readonly Minute[] {
    const first = Math.floor(at / minuteMs) - shown + 1
    const known = new Map(this.#minutes.map((each) => [each.number, each]))
    return Array.from({ length: shown }, (_, i) => known.get(first + i) ?? minuteOf(first + i))
  }

  /** Empty until there are samples. */
  saturation(at: number): Readonly<Partial<Record<GaugeName, Saturation>>> {
    if (!this.#measured) return {}
    const { gauges } = this.#measured
    const hour = this.#hourAt(at)
    return Object.fromEntries(
      gaugeNames.map((name) => {
        const current = gauges[name].current()
        const most = Math.max(current, ...hour.map((minute) => minute.most[name]))
        return [name, { current, most, limit: gauges[name].limit() }]
      }),
    )
  }
}
