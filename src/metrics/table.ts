/** One metric: what it is called, what it says, and by what it is told apart. */
export interface MetricRow {
  readonly name: `nodehub_${string}`
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly Label[]
}

/** Every label there is; what values each may take stands in labels.ts. */
export type Label =
  'verb' | 'resource' | 'component' | 'code' | 'source' | 'upstream' | 'outcome' | 'filter' | 'kind'

/** Our own metrics. Those of the process itself (`process_`, `nodejs_`) come beside them. */
export const metricTable = {
  requests: {
    name: 'nodehub_requests_total',
    type: 'counter',
    help: 'Requests answered, by where the answer came from: cloud, cache or hub. Left out are those refused before their sender was known (401, malformed paths). An upgrade that reached an API server is 101, even if it was refused there.',
    labels: ['verb', 'resource', 'component', 'code', 'source'],
  },
  requestDuration: {
    name: 'nodehub_request_duration_seconds',
    type: 'histogram',
    help: 'Time from a request to the end of its answer; watches, logs, exec, proxied and upgraded requests left out.',
    labels: ['verb', 'source'],
  },
  requestsInFlight: {
    name: 'nodehub_requests_in_flight',
    type: 'gauge',
    help: 'Short requests being served.',
    labels: [],
  },
  requestsRejected: {
    name: 'nodehub_requests_rejected_total',
    type: 'counter',
    help: 'Short requests answered 429 because too many were being served.',
    labels: [],
  },
  watches: {
    name: 'nodehub_watches',
    type: 'gauge',
    help: 'Watches being served.',
    labels: [],
  },
  upstreamHealthy: {
    name: 'nodehub_upstream_healthy',
    type: 'gauge',
    help: 'Whether an API server is healthy: 1 or 0.',
    labels: ['upstream'],
  },
  upstreamRequests: {
    name: 'nodehub_upstream_requests_total',
    type: 'counter',
    help: 'Requests sent to an API server, by what became of them; upgrades left out.',
    labels: ['upstream', 'outcome'],
  },
  online: {
    name: 'nodehub_online',
    type: 'gauge',
    help: 'Whether any API server is healthy: 1 or 0.',
    labels: [],
  },
  storeCommits: {
    name: 'nodehub_store_commits_total',
    type: 'counter',
    help: 'Commits to the store.',
    labels: [],
  },
  storeFailures: {
    name: 'nodehub_store_failures_total',
    type: 'counter',
    help: 'Writes the store did not take.',
    labels: [],
  },
  storeWrittenBytes: {
    name: 'nodehub_store_written_bytes_total',
    type: 'counter',
    help: 'Bytes of objects and documents written to the store.',
    labels: [],
  },
  filterErrors: {
    name: 'nodehub_filter_errors_total',
    type: 'counter',
    help: 'Objects at which a filter failed.',
    labels: ['filter'],
  },
  recorded: {
    name: 'nodehub_recorded_total',
    type: 'counter',
    help: 'What was recorded: objects, lists, documents, and, as watch, commits of events (one may hold many).',
    labels: ['kind'],
  },
  malformed: {
    name: 'nodehub_malformed_total',
    type: 'counter',
    help: 'Answers of API servers that could not be understood. Found before anything was passed on, an answer passes unrecorded; found later, it is broken off.',
    labels: [],
  },
} as const satisfies Readonly<Record<string, MetricRow>>

export type MetricTable = typeof metricTable
