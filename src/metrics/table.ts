/** One metric. */
export interface MetricRow {
  readonly name: `nodehub_${string}` | `node_yurthub_${string}`
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly Label[]
  /** Label values whose series exist from the start, at 0, of a counter or gauge. */
  readonly initialValues?: LabelValues | readonly LabelValues[]
}

type LabelValues = Readonly<Partial<Record<Label, readonly string[]>>>

const outcomes = { result: ['success', 'failure'] } as const
/** Why a server closes connections (`CutReason`). */
export const cutReasons = ['full', 'stalled', 'pipelined'] as const

/** Every label; labels.ts bounds their values. */
export type Label =
  | 'verb'
  | 'resource'
  | 'subresources'
  | 'component'
  | 'client'
  | 'code'
  | 'source'
  | 'upstream'
  | 'protocol'
  | 'server'
  | 'outcome'
  | 'result'
  | 'filter'
  | 'kind'
  | 'reason'
  | 'priority_level'
  | 'certificate'
  | 'version'
  | 'node'

/**
 * The hub's own metrics, and yurthub's under its names and labels (pkg/yurthub/metrics/metrics.go).
 * prom-client adds those of the process (`process_`, `nodejs_`).
 */
export const metricTable = {
  requests: {
    name: 'nodehub_requests_total',
    type: 'counter',
    help: 'Requests answered, by where the answer came from: cloud, cache or hub. Those refused before their sender was known (401, malformed paths) have no resource.',
    labels: ['verb', 'resource', 'component', 'code', 'source'],
  },
  requestDuration: {
    name: 'nodehub_request_duration_seconds',
    type: 'histogram',
    help: 'Time from a request to the end of its answer; watches, logs, exec, proxied and upgraded requests left out.',
    labels: ['verb', 'source'],
  },
  requestsRejected: {
    name: 'nodehub_requests_rejected_total',
    type: 'counter',
    help: 'Requests shed, by reason: in-flight, their priority level had no seat left; slow-body, its body did not come in time or others needed the room; memory, the hub was short of it (429; 504 where an API server has seen a part of a write). Watches and the like are shed only from unproven callers, before they begin.',
    labels: ['reason', 'priority_level'],
    initialValues: {
      reason: ['in-flight', 'slow-body', 'memory'],
      priority_level: ['node', 'workload', 'unproven'],
    },
  },
  executingSeats: {
    name: 'nodehub_flowcontrol_current_executing_seats',
    type: 'gauge',
    help: 'Seats taken, by priority level: node, the node itself; workload, callers whose token is proven; unproven, callers whose token no API server has accepted and the cluster has not signed. A request takes one when its body has arrived.',
    labels: ['priority_level'],
  },
  limitSeats: {
    name: 'nodehub_flowcontrol_limit_seats',
    type: 'gauge',
    help: 'Seats that a priority level may take together with the levels below it (unproven, workload, node).',
    labels: ['priority_level'],
  },
  connectionsCut: {
    name: 'nodehub_connections_cut_total',
    type: 'counter',
    help: 'Connections of clients closed, by reason: full, to make room for another, or for lack of it; stalled, the client took nothing of its answer for two minutes (over HTTP/2 the answer alone is cut); pipelined, too many requests ahead of their answers; memory, a watch held most of what too many watches left untaken (the watch alone is cut).',
    labels: ['reason'],
    initialValues: { reason: [...cutReasons, 'memory'] },
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
    help: 'Requests sent to an API server, by outcome: answered, or failed; upgrades left out.',
    labels: ['upstream', 'outcome'],
  },
  upstreamDuration: {
    name: 'nodehub_upstream_request_duration_seconds',
    type: 'histogram',
    help: 'Time from a request to an API server to the head of its answer, watches included; upgrades left out.',
    labels: ['upstream'],
  },
  upstreamCompressedBytes: {
    name: 'nodehub_upstream_compressed_bytes_total',
    type: 'counter',
    help: 'Bytes of compressed answers of API servers that the hub inflated, as they came.',
    labels: [],
  },
  upstreamInflatedBytes: {
    name: 'nodehub_upstream_inflated_bytes_total',
    type: 'counter',
    help: 'The same answers inflated: the difference is what compression saved.',
    labels: [],
  },
  cacheFallbacks: {
    name: 'nodehub_cache_fallbacks_total',
    type: 'counter',
    help: 'Requests that no API server answered and the cache did, while the hub still counted as online.',
    labels: [],
  },
  brokenAnswers: {
    name: 'nodehub_broken_answers_total',
    type: 'counter',
    help: 'Answers that broke off after they had begun: their clients saw a connection break.',
    labels: [],
  },
  bootReady: {
    name: 'nodehub_boot_ready',
    type: 'gauge',
    help: 'Whether the node and all of its pods would come back now without a link: 1 or 0 (`nodehub inspect boot` has the reasons).',
    labels: [],
  },
  bootPodsNotReady: {
    name: 'nodehub_boot_pods_not_ready',
    type: 'gauge',
    help: 'Pods that would not come back now without a link, by reason, several for one pod where there are: something it refers to is missing from the cache, absent in the cloud too, damaged, forbidden to this node; a token has expired; a claim is unbound, a volume unattached.',
    labels: ['reason'],
  },
  ready: {
    name: 'nodehub_ready',
    type: 'gauge',
    help: 'Whether /readyz succeeds: 1 or 0.',
    labels: [],
  },
  memoryLimit: {
    name: 'nodehub_memory_limit_bytes',
    type: 'gauge',
    help: 'Memory limit of the process (--memory-limit, or that of its control group): beyond it requests are shed.',
    labels: [],
  },
  online: {
    name: 'nodehub_online',
    type: 'gauge',
    help: 'Whether any API server answers its probes: 1 or 0.',
    labels: [],
  },
  offlineSince: {
    name: 'nodehub_offline_since_timestamp_seconds',
    type: 'gauge',
    help: 'When the hub went offline, in seconds since the epoch; 0 while it is online, or no probe has ended yet.',
    labels: [],
  },
  cacheAge: {
    name: 'nodehub_cache_age_seconds',
    type: 'gauge',
    help: 'Seconds since the cloud last confirmed any recorded collection of a resource, by a list, an event or a bookmark.',
    labels: ['resource'],
  },
  storeFailures: {
    name: 'nodehub_store_failures_total',
    type: 'counter',
    help: 'Writes the store did not take.',
    labels: [],
  },
  storeBytes: {
    name: 'nodehub_store_bytes',
    type: 'gauge',
    help: 'Size of the cache on the disk.',
    labels: [],
  },
  storeLimit: {
    name: 'nodehub_store_limit_bytes',
    type: 'gauge',
    help: 'Size limit of the cache on the disk (--cache-max-bytes).',
    labels: [],
  },
  storeDiskBytes: {
    name: 'nodehub_store_disk_written_bytes_total',
    type: 'counter',
    help: 'Bytes that the store wrote to its log, with what compactions copy.',
    labels: [],
  },
  storeDamaged: {
    name: 'nodehub_store_damaged_total',
    type: 'counter',
    help: 'Stored objects and documents that were found damaged and quarantined until they are read again from the cloud.',
    labels: [],
  },
  storeEvicted: {
    name: 'nodehub_store_evicted_total',
    type: 'counter',
    help: 'Evicted objects and documents: old, confirmed longest ago, and the node does not boot with them; gone, objects that pods refer to, mostly of deleted pods.',
    labels: ['kind'],
    initialValues: {
      kind: ['old', 'gone'],
    },
  },
  storeSetAside: {
    name: 'nodehub_store_set_aside_total',
    type: 'counter',
    help: 'Logs of which no file could be used: the cache began empty.',
    labels: [],
  },
  hubAddressReachable: {
    name: 'nodehub_hub_address_reachable',
    type: 'gauge',
    help: 'Whether pods are led to the hub (1): it answers at --hub-address, or at the dummy interface, with a certificate that they trust. Else (0) masterservice, serviceenvupdater and forwardkubesvctraffic do nothing.',
    labels: [],
  },
  filterErrors: {
    name: 'nodehub_filter_errors_total',
    type: 'counter',
    help: 'Objects on which a filter failed.',
    labels: ['filter'],
  },
  filterDecisions: {
    name: 'nodehub_filter_decisions_total',
    type: 'counter',
    help: 'Objects that a filter has withheld or edited, each time that one is shown; all watches that share a decision count once.',
    labels: ['filter', 'result'],
  },
  hostNetworkPods: {
    name: 'nodehub_host_network_pods',
    type: 'gauge',
    help: 'Pods of this node by the network on which the kubelet is shown them: host, their spec requests it; propagated, it does not; pod.',
    labels: ['kind'],
  },
  hostNetworkPortClashes: {
    name: 'nodehub_host_network_port_clashes',
    type: 'gauge',
    help: 'Ports that propagated pods share with other pods or with what a node usually has there (`nodehub inspect host-network` names them).',
    labels: [],
  },
  tracingSpans: {
    name: 'nodehub_tracing_spans_total',
    type: 'counter',
    help: 'Spans of recorded traces (--tracing-endpoint), by result: exported, the collector has taken them; failed, it did not take them. Those beyond the bound of pending ones are not counted.',
    labels: ['result'],
    initialValues: { result: ['exported', 'failed'] },
  },
  recorded: {
    name: 'nodehub_recorded_total',
    type: 'counter',
    help: 'Records written: objects, lists, documents, tokens, answers to reviews, and, as watch, commits of events (one may hold many).',
    labels: ['kind'],
    initialValues: { kind: ['object', 'list', 'watch', 'document', 'token', 'review'] },
  },
  malformed: {
    name: 'nodehub_upstream_malformed_answers_total',
    type: 'counter',
    help: 'Answers of API servers that could not be understood. One that is found before its first byte was passed on passes unrecorded; one found later is broken off.',
    labels: [],
  },
  upstreamConnections: {
    name: 'nodehub_upstream_connections',
    type: 'gauge',
    help: 'Open connections to an API server, by protocol: http/1.1, or h2 for watches. Those of upgrades and probes are left out.',
    labels: ['upstream', 'protocol'],
  },
  cacherUpstreamWatches: {
    name: 'nodehub_cacher_upstream_watches',
    type: 'gauge',
    help: 'Watches of API servers that cachers have open.',
    labels: [],
  },
  cacherWatchers: {
    name: 'nodehub_cacher_watchers',
    type: 'gauge',
    help: 'Watches of clients that cachers serve.',
    labels: [],
  },
  cacherWatchersEnded: {
    name: 'nodehub_cacher_watchers_ended_total',
    type: 'counter',
    help: 'Watches served by cachers that the hub ended before their time, by reason: slow, the client had not read what the event log let go; expired, the client is answered 410, as the version has expired and something has changed since, or the cluster was restored from a backup; over, cleanly, as the API server refuses the upstream watch or the store does not take its events.',
    labels: ['reason'],
    initialValues: { reason: ['slow', 'expired', 'over'] },
  },
  cacherBytes: {
    name: 'nodehub_cacher_bytes',
    type: 'gauge',
    help: 'What the event logs of cachers take in memory.',
    labels: [],
  },
  filterInputMissing: {
    name: 'nodehub_filter_input_missing',
    type: 'gauge',
    help: 'Whether filters lack an input that the API server refuses, by resource: forbidden, the right is missing; absent, there is no such resource; refused, for another reason. They keep their last input.',
    labels: ['resource', 'reason'],
  },
  configMapReads: {
    name: 'nodehub_config_map_reloads_total',
    type: 'counter',
    help: "Times the hubs' ConfigMap was read again because it appeared, changed or was deleted: success, or failure, which leaves the last good one in force.",
    labels: ['result'],
    initialValues: outcomes,
  },
  configReloads: {
    name: 'nodehub_config_reloads_total',
    type: 'counter',
    help: 'Times the configuration was read again while the hub ran: success, or failure, which leaves the last good one in force.',
    labels: ['result'],
    initialValues: outcomes,
  },
  configLastReload: {
    name: 'nodehub_config_last_reload_successful',
    type: 'gauge',
    help: 'Whether the configuration in force is the one that was read last: 1, or 0 where that could not be used.',
    labels: [],
  },
  credentialsRefused: {
    name: 'nodehub_upstream_credentials_refused',
    type: 'gauge',
    help: "1 where an API server answered 401 to the hub's own credentials when they were shown to it last, else 0: the node is answered from the cache then. The check certificate of /readyz?verbose says why.",
    labels: ['upstream'],
  },
  certificateExpiry: {
    name: 'nodehub_certificate_expiry_timestamp_seconds',
    type: 'gauge',
    help: 'When a certificate in use ends, in seconds since 1970: client, which the hub shows to API servers; serving, which it shows to clients over TLS.',
    labels: ['certificate'],
  },
  buildInfo: {
    name: 'nodehub_build_info',
    type: 'gauge',
    help: 'Always 1: the versions of the hub and of the Node that runs it.',
    labels: ['version', 'node'],
  },
  yurthubServerHealthy: {
    name: 'node_yurthub_server_healthy_status',
    type: 'gauge',
    help: 'Whether an API server is healthy: 1 or 0.',
    labels: ['server'],
  },
  yurthubInFlight: {
    name: 'node_yurthub_in_flight_requests_collector',
    type: 'gauge',
    help: 'Requests for resources being served, watches and upgrades included.',
    labels: ['verb', 'resource', 'subresources', 'client'],
  },
  yurthubInFlightTotal: {
    name: 'node_yurthub_in_flight_requests_total',
    type: 'gauge',
    help: 'The sum of these.',
    labels: [],
  },
  yurthubTraffic: {
    name: 'node_yurthub_proxy_traffic_collector',
    type: 'counter',
    help: "Bytes of API servers' answers, without their heads, as they came over the link; upgrades left out.",
    labels: ['client', 'verb', 'resource', 'subresources'],
  },
  yurthubConnections: {
    name: 'node_yurthub_closable_conns_collector',
    type: 'gauge',
    help: 'Open connections to an API server, by its host and port.',
    labels: ['server'],
  },
  yurthubErrorKeysStatus: {
    name: 'node_yurthub_error_keys_persistency_status',
    type: 'gauge',
    help: 'Whether the store takes writes: 1 or 0.',
    labels: [],
  },
  yurthubErrorKeys: {
    name: 'node_yurthub_error_keys_count',
    type: 'gauge',
    help: 'Collections that could not be written to the cache; yurthub counts single keys.',
    labels: [],
  },
} as const satisfies Readonly<Record<string, MetricRow>>

export type MetricTable = typeof metricTable
