import {
  collectDefaultMetrics,
  Counter,
  Gauge,
  Registry,
  type Metric,
  type MetricValueWithName,
} from 'prom-client'
import { ownVersion } from '../base/own-version.ts'
import { clusterMetricTable, type ClusterMetricTable } from './cluster-table.ts'
import { labelBounds, type Bounds, type Label } from './labels.ts'
import { metricTable, type MetricRow, type MetricTable } from './table.ts'

type LabelsOf<Row extends MetricRow> = { readonly [Name in Row['labels'][number]]: string }

/** A metric without labels is called without them. */
type Arguments<Row extends MetricRow, Rest extends unknown[]> = [Row['labels'][number]] extends [
  never,
]
  ? Rest
  : [labels: LabelsOf<Row>, ...rest: Rest]

interface CounterOf<Row extends MetricRow> {
  /** By one, or by `amount`. */
  add(...args: Arguments<Row, [amount?: number]>): void
  /** The count of a series, which the caller increments: it looks the series up once. */
  of(...args: Arguments<Row, []>): Count
}

interface Count {
  amount: number
}

const noCount = (): Count => ({ amount: 0 })

interface GaugeOf<Row extends MetricRow> {
  set(...args: Arguments<Row, [value: number]>): void
  /** Removes every series. */
  clear(): void
  /** By a difference, which may be negative. */
  add(...args: Arguments<Row, [difference: number]>): void
}

interface HistogramOf<Row extends MetricRow> {
  observe(...args: Arguments<Row, [value: number]>): void
  /** A series that the caller looks up once. */
  of(...args: Arguments<Row, []>): Series
}

type MetricOf<Row extends MetricRow> = Row['type'] extends 'counter'
  ? CounterOf<Row>
  : Row['type'] extends 'gauge'
    ? GaugeOf<Row>
    : HistogramOf<Row>

type MetricsOf<Table extends Readonly<Record<string, MetricRow>>> = {
  readonly [Key in keyof Table]: MetricOf<Table[Key]>
}

type Metrics = MetricsOf<MetricTable>

/** One metric for each row of the table. Label values that a client chooses are bounded here. */
export type HubMetrics = Metrics & {
  /**
   * The counters of requests with these labels; labels are bounded.
   */
  traffic(labels: TrafficLabels): Traffic
  /** Calls `update` before metrics are read, to set values that another part holds. */
  onRead(update: () => void): void
  /** All metrics, and those of the process, in Prometheus' text format. */
  exposition(): Promise<{ readonly contentType: string; readonly body: string }>
}

const empty: ReadonlySet<string> = new Set()
const none = (): ReadonlySet<string> => empty

/** From a millisecond to the minute after which an API server times out a request. */
const durations = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/**
 * The metrics of one hub, in a registry of their own: two hubs in a process do not add up.
 * `components` have series of their own, besides the well-known ones; others count as `other`.
 */
export function createMetrics(components: () => ReadonlySet<string> = none): HubMetrics {
  const registry = newRegistry()
  const bounds = labelBounds(components)
  const named = metricsIn(metricTable, registry, bounds)
  // Equal labels are the same object.
  const traffic = new Map<Labels, KnownTraffic>()
  const trafficSeries = seriesWith(metricTable.yurthubTraffic.labels, bounds)
  const newTraffic = (labels: Labels): KnownTraffic =>
    new KnownTraffic(labels as Labels & TrafficLabels, named)
  registry.updates.push(trafficReport(traffic, named))
  return {
    ...named,
    traffic: (labels) => traffic.getOrInsertComputed(trafficSeries(labels), newTraffic),
    ...readingOf(registry, named),
  }
}

/** One metric for each row of the cluster's table. */
export type ClusterMetrics = MetricsOf<ClusterMetricTable> &
  Pick<HubMetrics, 'onRead' | 'exposition'>

/** The metrics of one replica of `nodehub cluster`, in a registry of their own. */
export function createClusterMetrics(): ClusterMetrics {
  const registry = newRegistry()
  const named = metricsIn(clusterMetricTable, registry, labelBounds(none))
  return { ...named, ...readingOf(registry, named) }
}

/** A registry, and what is done before it is read. */
interface MetricRegistry {
  readonly registry: Registry
  /** Set values that other parts hold. */
  readonly updates: (() => void)[]
  /** Add buffered counts to the counters; called after `updates`. */
  readonly flushCounters: (() => void)[]
}

/** The reading of a registry, which shows the versions from now on. */
function readingOf(
  { registry, updates, flushCounters }: MetricRegistry,
  { buildInfo }: Pick<Metrics, 'buildInfo'>,
): Pick<HubMetrics, 'onRead' | 'exposition'> {
  buildInfo.set({ version: ownVersion(), node: process.versions.node }, 1)
  return {
    onRead: (update) => updates.push(update),
    exposition: async () => {
      for (const act of [...updates, ...flushCounters]) act()
      const body = await registry.metrics()
      return { contentType: registry.contentType, body }
    },
  }
}

function newRegistry(): MetricRegistry {
  const registry = new Registry()
  // Sampled twice a second: the default of a hundred times would wake an idle node.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 500 })
  return { registry, updates: [], flushCounters: [] }
}

const metricsIn = <Table extends Readonly<Record<string, MetricRow>>>(
  table: Table,
  registry: MetricRegistry,
  bounds: Bounds,
): MetricsOf<Table> =>
  Object.fromEntries(
    Object.entries<MetricRow>(table).map(([key, row]) => [
      key,
      metricOf(row, registry, seriesWith(row.labels, bounds)),
    ]),
  ) as unknown as MetricsOf<Table>

/** Updates the metrics from the traffic. */
function trafficReport(traffic: ReadonlyMap<Labels, Traffic>, metrics: Metrics): () => void {
  const reported = new Map<Labels, number>()
  return () => {
    let total = 0
    for (const [series, { inFlight, receivedBytes }] of traffic) {
      const labels = series as Labels & TrafficLabels
      total += inFlight
      metrics.yurthubInFlight.set(labels, inFlight)
      metrics.yurthubTraffic.add(labels, receivedBytes - (reported.get(series) ?? 0))
      reported.set(series, receivedBytes)
    }
    metrics.yurthubInFlightTotal.set(total)
  }
}

/** The calls of the three metric types; labels are optional. */
type Call = (first?: Labels | number, second?: number) => unknown

const unlabelled: Labels = {}

function metricOf(
  row: MetricRow,
  { registry, flushCounters: tellCounts }: MetricRegistry,
  series: (labels: Labels) => Labels,
): Record<string, Call> {
  const { name, help, initialValues } = row
  const initial = combined(Object.entries(initialValues))
  const shape = { name, help, labelNames: row.labels, registers: [registry] }
  const call =
    (act: (labels: Labels, value: number) => unknown): Call =>
    (first, second) =>
      typeof first === 'object' ? act(series(first), second ?? 1) : act(unlabelled, first ?? 1)
  switch (row.type) {
    case 'counter': {
      const counter = new Counter(shape)
      // A counter searches for its series on each call; here equal labels are the same object.
      const counts = new Map<Labels, Count>()
      const of = (labels: Labels): Count => counts.getOrInsertComputed(labels, noCount)
      for (const labels of initial) of(series(labels))
      tellCounts.push(() => {
        for (const [labels, count] of counts) {
          counter.inc(labels, count.amount)
          count.amount = 0
        }
      })
      return { add: call((labels, amount) => void (of(labels).amount += amount)), of: call(of) }
    }
    case 'gauge': {
      const gauge = new Gauge(shape)
      for (const labels of initial) gauge.set(series(labels), 0)
      return {
        set: call((labels, value) => gauge.set(labels, value)),
        clear: () => gauge.reset(),
        add: call((labels, difference) => gauge.inc(labels, difference)),
      }
    }
    case 'histogram': {
      const histogram = new DurationHistogram(name, help)
      registry.registerMetric(histogram as unknown as Metric)
      const of = (labels: Labels): Series => histogram.of(labels)
      return { observe: call((labels, value) => of(labels).observe(value)), of: call(of) }
    }
  }
}

/**
 * A histogram for the registry of prom-client, whose own searches for its series on each call; here
 * equal labels are the same object.
 */
class DurationHistogram {
  readonly name: string
  readonly #help: string
  readonly #series = new Map<Labels, Series>()

  constructor(name: string, help: string) {
    this.name = name
    this.#help = help
  }

  of(labels: Labels): Series {
    return this.#series.getOrInsertComputed(labels, newSeries)
  }

  /** As prom-client reads a metric. */
  get(): Promise<object> {
    const values = [...this.#series].flatMap(([labels, { counts, sum }]) => {
      let below = 0
      const row = (suffix: string, value: number, le?: number | string): Row => ({
        metricName: `${this.name}_${suffix}`,
        labels: le === undefined ? labels : { ...labels, le },
        value,
      })
      const buckets = counts.map((count, at) =>
        row('bucket', (below += count), durations[at] ?? '+Inf'),
      )
      return [...buckets, row('sum', sum), row('count', below)]
    })
    return Promise.resolve({ name: this.name, help: this.#help, type: 'histogram', values })
  }
}

/** The number of values of each bucket, and beyond all, and the sum of values. */
class Series {
  readonly counts = Array<number>(durations.length + 1).fill(0)
  sum = 0

  observe(value: number): void {
    let at = 0
    while (value > (durations[at] ?? Infinity)) at++
    this.counts[at] = (this.counts[at] ?? 0) + 1
    this.sum += value
  }
}

const newSeries = (): Series => new Series()

type Row = MetricValueWithName<string>

/** Every combination of label values; none without labels. */
function combined([first, ...rest]: readonly [
  label: string,
  values: readonly string[],
][]): Labels[] {
  if (!first) return []
  const [label, values] = first
  const others = rest.length === 0 ? [{}] : combined(rest)
  return values.flatMap((value) => others.map((other) => ({ ...other, [label]: value })))
}

/** Several times the series of a busy node. */
export const mostSeries = 2_000

export type Labels = Readonly<Record<string, string>>

/**
 * The bounded labels of a metric, the same object for equal labels. Beyond the limit of
 * combinations every label is `other`.
 */
function seriesWith(
  names: readonly Label[],
  bounds: Bounds,
): (labels: Readonly<Record<string, string>>) => Labels {
  const root = new Branch()
  let size = 0
  const others = Object.fromEntries(names.map((name) => [name, 'other']))
  return (labels) => {
    let branch = root
    for (const name of names) {
      const value = bounds[name](labels[name] ?? '')
      let next = branch.byValue.get(value)
      if (next === undefined) {
        if (size >= mostSeries) return others
        branch.byValue.set(value, (next = new Branch()))
      }
      branch = next
    }
    if (branch.labels === undefined) {
      size += 1
      branch.labels = Object.fromEntries(
        names.map((name) => [name, bounds[name](labels[name] ?? '')]),
      )
    }
    return branch.labels
  }
}

/** A tree, by the values of the labels in order: a look-up makes no string. */
class Branch {
  readonly byValue = new Map<string, Branch>()
  labels: Labels | undefined
}

/**
 * The traffic of one kind of request by one component, in plain numbers, as they change with every
 * request and chunk.
 */
export interface Traffic {
  /** In flight now. */
  inFlight: number
  /** Body bytes received from API servers, before inflating. */
  receivedBytes: number
  /** Counts an answer. */
  answered(source: string, code: number): void
  /** Counts the time that such a request took. */
  took(source: string, seconds: number): void
}

/** The labels of one kind of request. */
export type TrafficLabels = Readonly<
  Record<'verb' | 'resource' | 'subresources' | 'client', string>
>

/** The answers of one kind of request from one source. */
interface Answers {
  readonly byCode: Map<number, Count>
  readonly duration: Series
}

class KnownTraffic implements Traffic {
  readonly #labels: TrafficLabels
  readonly #metrics: Pick<Metrics, 'requests' | 'requestDuration'>
  readonly #bySource = new Map<string, Answers>()
  inFlight = 0
  receivedBytes = 0

  constructor(labels: TrafficLabels, metrics: Pick<Metrics, 'requests' | 'requestDuration'>) {
    this.#labels = labels
    this.#metrics = metrics
  }

  answered(source: string, code: number): void {
    const { byCode } = this.#of(source)
    let count = byCode.get(code)
    if (!count) {
      const { verb, resource, client: component } = this.#labels
      count = this.#metrics.requests.of({ verb, resource, component, code: String(code), source })
      byCode.set(code, count)
    }
    count.amount++
  }

  took(source: string, seconds: number): void {
    this.#of(source).duration.observe(seconds)
  }

  #of(source: string): Answers {
    let known = this.#bySource.get(source)
    if (!known) {
      const duration = this.#metrics.requestDuration.of({ verb: this.#labels.verb, source })
      known = { byCode: new Map(), duration }
      this.#bySource.set(source, known)
    }
    return known
  }
}
