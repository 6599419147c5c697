import type { Labels } from './series.ts'

/**
 * What requests of one kind, by one component, amount to: plain numbers, since they change with
 * every request and every chunk.
 */
export interface Traffic {
  /** Being served now. */
  inFlight: number
  /** Of the bodies that API servers answered, as they came. */
  receivedBytes: number
}

/** What tells one kind of request from another. */
export type TrafficLabels = Readonly<
  Record<'verb' | 'resource' | 'subresources' | 'client', string>
>

/** The traffic of one hub, kept until somebody reads it. */
export class TrafficTable {
  readonly #series = new Map<Labels, Traffic>()

  /** `series` is an object of its own for each kind of request, and always the same. */
  of(series: Labels): Traffic {
    const known = this.#series.get(series)
    if (known) return known
    const traffic = { inFlight: 0, receivedBytes: 0 }
    this.#series.set(series, traffic)
    return traffic
  }

  all(): Iterable<[Labels, Traffic]> {
    return this.#series
  }
}
