import type { JobOf } from '../load/jobs.ts'
import { costOf, each } from '../measure/cost.ts'
import { aheadOf, sumOf, type Metric, type Sample } from '../measure/row.ts'
import type { RunningPeer } from '../peers/peer.ts'
import type { Setting } from './scenario.ts'

/** How many events a second rows of watches have. */
export const perSecond = 100

/** Events that warm a peer up (V8 optimizes at the 3,000th call), and how many a second. */
const [manyEvents, quickly] = [8_000, 500]

const added = [aheadOf('yurthub')]

/**
 * What a watch told later than another one that it is compared with, and its delay beside its own
 * row's base.
 */
export const deliveryMetrics = (against?: Metric['against']): readonly Metric[] => [
  { key: 'addedP50', title: 'added p50 ms', digits: 2, ...(against && { aims: added }) },
  { key: 'addedP99', title: 'added p99 ms', digits: 2, ...(against && { aims: added }) },
  { key: 'delayP50', title: 'delay p50 ms', digits: 2, ...(against && { against }) },
  { key: 'delayP99', title: 'delay p99 ms', digits: 2, ...(against && { against }) },
  {
    key: 'cpu',
    title: 'cpu ms/event',
    digits: 3,
    ...(against && { against: 'haproxy-http', aims: [{ most: 0.6 }] }),
  },
  { key: 'memory', title: 'peak MB', digits: 0 },
]

/**
 * Patches these in turn at a steady rate, and measures how a watch of a peer's tells of it beside
 * another.
 */
export class Delivery {
  readonly #pathsOf: (setting: Setting) => readonly string[]
  /** Before what counts, where a measurement lasts a second: to let everything be compiled. */
  readonly #warmUpEvents: number
  #next = 0

  constructor(pathsOf: (setting: Setting) => readonly string[], warmUpEvents: number) {
    this.#pathsOf = pathsOf
    this.#warmUpEvents = warmUpEvents
  }

  /** Lets a peer tell of as many events as V8 needs to compile their path. */
  async warm(setting: Setting, watch: JobOf<'watch'>): Promise<void> {
    const { load } = setting
    await load.run('watch', watch)
    const from = this.#next
    await this.#write(setting, Math.ceil(manyEvents * Math.min(1, setting.seconds)), quickly)
    await load.run('watched', { from, to: this.#next, patienceMs: 30_000 })
  }

  async measure(
    { processId }: RunningPeer,
    setting: Setting,
    watch: JobOf<'watch'>,
  ): Promise<Sample> {
    const { load, seconds } = setting
    await load.run('watch', watch)
    await this.#write(setting, Math.ceil(this.#warmUpEvents * Math.min(1, setting.seconds)))
    const from = this.#next
    const { result, cost } = await costOf(processId, async () => {
      const written = await this.#write(setting, Math.ceil(seconds * perSecond))
      const watched = await load.run('watched', { from, to: this.#next, patienceMs: 30_000 })
      return { ...watched, failures: sumOf([written.failures, watched.failures]) }
    })
    return {
      figures: {
        addedP50: result.addedP50Ms,
        addedP99: result.addedP99Ms,
        delayP50: result.delayP50Ms,
        delayP99: result.delayP99Ms,
        cpu: each(cost.cpuSeconds, result.events / 1000),
        memory: cost.peakMegabytes,
      },
      failures: result.failures,
      loadShare: result.loadShare,
    }
  }

  #write(setting: Setting, count: number, rate = perSecond) {
    const { writer, admin } = setting
    const paths = this.#pathsOf(setting)
    const from = this.#next
    this.#next += count
    return writer.run('write', { target: admin, paths, from, count, perSecond: rate })
  }
}
