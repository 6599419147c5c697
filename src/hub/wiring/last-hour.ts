import { every, now } from '../../base/clock.ts'
import { isRead } from '../../api/request/request-info.ts'
import type { AnsweredRequest, AnswerLine } from '../pipeline/trace.ts'

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
export const isRefusal = ({ verb, code }: Pick<AnswerLine, 'verb' | 'code'>): boolean =>
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

const counted = ['cloud', 'cache', 'hub', 'refused'] as const
const [wasOnline, wasOffline] = [1, 2]

/** So many durations are distinguished between one and its double. */
const perDouble = 8
/** From a sixteenth of a millisecond to four minutes. */
const [shortestPower, longestPower] = [-4, 18]

type Counted = 'source' | 'verb' | 'code' | 'ms' | 'isShort' | 'at'

/** Answers, link and load by the minute, in a ring of an hour. */
export class LastHour {
  /** The minute since the epoch that a place of the ring is of. */
  readonly #minuteAt = new Float64Array(shown)
  readonly #answers = ringsOf(counted)
  /** The most of each minute. */
  readonly #most = ringsOf(gaugeNames)
  readonly #link = new Float64Array(shown)
  readonly #p99Ms = new Float64Array(shown)
  /** How many short requests of the present minute took so long. */
  readonly #durations = new Uint32Array(perDouble * (longestPower - shortestPower))
  #present = 0
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
    const place = this.#placeOf(now())
    for (const name of gaugeNames) {
      const { current, most = current } = gauges[name]
      raise(this.#most[name], place, most())
    }
    const isOnline = online()
    if (isOnline !== undefined) raise(this.#link, place, isOnline ? wasOnline : wasOffline)
  }

  add(line: Pick<AnsweredRequest, Counted>): void {
    const { source, ms, isShort, at } = line
    const place = this.#placeOf(at)
    if (source === 'cloud' || source === 'cache' || source === 'hub')
      increment(this.#answers[source], place)
    if (isRefusal(line)) increment(this.#answers.refused, place)
    if (!isShort) return
    const step = Math.ceil(perDouble * (Math.log2(ms) - shortestPower))
    increment(this.#durations, Math.min(Math.max(step, 0), this.#durations.length - 1))
  }

  #placeOf(at: number): number {
    const minute = Math.floor(at / minuteMs)
    const place = minute % shown
    if (this.#minuteAt[place] === minute) return place
    this.#p99Ms[this.#present] = percentile99(this.#durations)
    this.#durations.fill(0)
    const rings = [...Object.values(this.#answers), ...Object.values(this.#most)]
    for (const ring of [...rings, this.#link, this.#p99Ms]) ring[place] = 0
    this.#minuteAt[place] = minute
    this.#present = place
    return place
  }

  minutes(at: number): Minutes {
    this.#p99Ms[this.#present] = percentile99(this.#durations)
    const of = (ring: Float64Array): number[] => this.#hourOf(ring, at)
    const known = (ring: Float64Array): Known<number> => of(ring).map((value) => value || null)
    const { cloud, cache, hub, refused } = this.#answers
    return {
      cloud: of(cloud),
      cache: of(cache),
      hub: of(hub),
      refused: of(refused),
      online: of(this.#link).map((link) => (link === 0 ? null : link === wasOnline)),
      p99Ms: known(this.#p99Ms),
      memoryBytes: known(this.#most.memory),
      cacheBytes: known(this.#most.cache),
    }
  }

  #hourOf(ring: Float64Array, at: number): number[] {
    const last = Math.floor(at / minuteMs)
    return Array.from({ length: shown }, (_, i) => {
      const minute = last - shown + 1 + i
      const place = minute % shown
      return this.#minuteAt[place] === minute ? (ring[place] ?? 0) : 0
    })
  }

  /** Empty until there are samples. */
  saturation(at: number): Readonly<Partial<Record<GaugeName, Saturation>>> {
    if (!this.#measured) return {}
    return Object.fromEntries(
      Object.entries(this.#measured.gauges).map(([name, { current, limit }]) => {
        const present = current()
        const most = Math.max(present, ...this.#hourOf(this.#most[name as GaugeName], at))
        return [name, { current: present, most, limit: limit() }]
      }),
    )
  }
}

const ringsOf = <Name extends string>(names: readonly Name[]): Record<Name, Float64Array> =>
  Object.fromEntries(names.map((name) => [name, new Float64Array(shown)])) as Record<
    Name,
    Float64Array
  >

function increment(ring: Float64Array | Uint32Array, place: number): void {
  ring[place] = (ring[place] ?? 0) + 1
}

function raise(ring: Float64Array, place: number, value: number): void {
  ring[place] = Math.max(ring[place] ?? 0, value)
}

/** 0 where there are none. */
function percentile99(durations: Uint32Array): number {
  const all = durations.reduce((sum, times) => sum + times, 0)
  let above = Math.floor(all / 100)
  for (let step = durations.length - 1; step >= 0; step--) {
    above -= durations[step] ?? 0
    if (above < 0) return Math.round(10 * 2 ** (step / perDouble + shortestPower)) / 10
  }
  return 0
}
