/** What requests of one kind, by one component, amount to: plain numbers, since they change with every request and every chunk. */
export interface Traffic {
  /** Being served now. */
  inFlight: number
  /** Of the bodies that API servers answered, as they came. */
  receivedBytes: number
}

/** What tells one kind of request from another; every value bounded (see labels.ts). */
export interface TrafficLabels {
  readonly verb: string
  readonly resource: string
  readonly subresource: string
  readonly component: string
}

/** Kinds told apart: several times what a busy node shows. What else a client makes up of known words counts together. */
const mostSeries = 2_000

/** The rest of them. */
const others: TrafficLabels = {
  verb: 'other',
  resource: 'other',
  subresource: 'other',
  component: 'other',
}

interface Series extends Traffic {
  readonly labels: TrafficLabels
}

/** The traffic of one hub, kept until somebody reads it. */
export class TrafficTable {
  readonly #series = new Map<string, Series>()

  /** The same object for the same labels. */
  of(labels: TrafficLabels): Traffic {
    const { verb, resource, subresource, component } = labels
    const key = `${verb} ${resource} ${subresource} ${component}`
    const known = this.#series.get(key)
    if (known) return known
    if (this.#series.size >= mostSeries && labels !== others) return this.of(others)
    const series = { labels, inFlight: 0, receivedBytes: 0 }
    this.#series.set(key, series)
    return series
  }

  all(): Iterable<Traffic & { readonly labels: TrafficLabels }> {
    return this.#series.values()
  }
}
