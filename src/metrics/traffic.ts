import type { Labels } from './series.ts'

/**
 * The traffic of one kind of request by one component, in plain numbers, as they change with every
 * request and chunk.
 */
export interface Traffic {
  /** In flight now. */
  inFlight: number
  /** Body bytes received from API servers, before inflating. */
  receivedBytes: number
}

/** The labels of one kind of request. */
export type TrafficLabels = Readonly<
  Record<'verb' | 'resource' | 'subresources' | 'client', string>
>

/** The traffic of one hub between two readings. */
export class TrafficTable {
  readonly #series = new Map<Labels, Traffic>()

  /** `series` is the same object for each kind of request. */
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
