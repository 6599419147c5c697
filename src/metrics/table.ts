import type { Label } from './labels.ts'

/** One metric. */
export interface MetricRow<Type = 'counter' | 'gauge' | 'histogram', Name extends Label = Label> {
  readonly name: `nodehub_${string}` | `node_yurthub_${string}`
  readonly type: Type
  readonly help: string
  readonly labels: readonly Name[]
  /** Label values whose series exist from the start, at 0, of a counter or gauge. */
  readonly initialValues: Readonly<Partial<Record<Label, readonly string[]>>>
}

const metric =
  <Type extends MetricRow['type']>(type: Type) =>
  /** `labels`: their names, or the values of each whose series exist from the start. */
  <const Name extends Label = never>(
    name: MetricRow['name'],
    help: string,
    labels: readonly Name[] | Readonly<Record<Name, readonly string[]>> = [],
  ): MetricRow<Type, Name> =>
    isList(labels)
      ? { name, type, help, labels, initialValues: {} }
      : { name, type, help, labels: Object.keys(labels) as Name[], initialValues: labels }

const isList = (labels: object): labels is readonly unknown[] => Array.isArray(labels)

export const counter = metric('counter')
export const gauge = metric('gauge')
const histogram = metric('histogram')

const outcomes = { result: ['success', 'failure'] } as const
/** Why a server closes connections (`CutReason`). */
export const cutReasons = ['full', 'stalled', 'pipelined'] as const

/**
 * The hub's own metrics, and yurthub's under its names and labels (pkg/yurthub/metrics/metrics.go).
 * prom-client adds those of the process (`process_`, `nodejs_`).
 */
export const metricTable = {
  requests: counter(
    'nodehub_requests_total',
    'Requests answered, by where the answer came from: cloud, cache or hub. Those refused before their sender was known (401, malformed paths) have no resource.',
    ['verb', 'resource', 'component', 'code', 'source'],
  ),
  requestDuration: histogram(
    'nodehub_request_duration_seconds',
    'Time from a request to the end of its answer; watches, logs, exec, proxied and upgraded requests left out.',
    ['verb', 'source'],
  ),
  requestsRejected: counter(
    'nodehub_requests_rejected_total',
    'Requests shed, by reason: in-flight, their priority level had no seat left; slow-body, its body did not come in time or others needed the room; memory, the hub was short of it (429; 504 where an API server has seen a part of a write). Watches and the like are shed only from unproven callers, before they begin.',
    {
      reason: ['in-flight', 'slow-body', 'memory'],
      priority_level: ['node', 'workload', 'unproven'],
    },
  ),
  executingSeats: gauge(
    'nodehub_flowcontrol_current_executing_seats',
    'Seats taken, by priority level: node, the node itself; workload, callers whose token is proven; unproven, callers whose token no API server has accepted and the cluster has not signed. A request takes one when its body has arrived.',
    ['priority_level'],
  ),
  limitSeats: gauge(
    'nodehub_flowcontrol_limit_seats',
    'Seats that a priority level may take together with the levels below it (unproven, workload, node).',
    ['priority_level'],
  ),
  connectionsCut: counter(
    'nodehub_connections_cut_total',
    'Connections of clients closed, by reason: full, to make room for another, or for lack of it; stalled, the client took nothing of its answer for two minutes (over HTTP/2 the answer alone is cut); pipelined, too many requests ahead of their answers; memory, a watch held most of what too many watches left untaken (the watch alone is cut).',
    { reason: [...cutReasons, 'memory'] },
  ),
  watches: gauge('nodehub_watches', 'Watches being served.'),
  upstreamHealthy: gauge('nodehub_upstream_healthy', 'Whether an API server is healthy: 1 or 0.', [
    'upstream',
  ]),
  upstreamRequests: counter(
    'nodehub_upstream_requests_total',
    'Requests sent to an API server, by outcome: answered, or failed; upgrades left out.',
    ['upstream', 'outcome'],
  ),
  upstreamDuration: histogram(
    'nodehub_upstream_request_duration_seconds',
    'Time from a request to an API server to the head of its answer, watches included; upgrades left out.',
    ['upstream'],
  ),
  upstreamCompressedBytes: counter(
    'nodehub_upstream_compressed_bytes_total',
    'Bytes of compressed answers of API servers that the hub inflated, as they came.',
  ),
  upstreamInflatedBytes: counter(
    'nodehub_upstream_inflated_bytes_total',
    'The same answers inflated: the difference is what compression saved.',
  ),
  cacheFallbacks: counter(
    'nodehub_cache_fallbacks_total',
    'Requests that no API server answered and the cache did, while the hub still counted as online.',
  ),
  brokenAnswers: counter(
    'nodehub_broken_answers_total',
    'Answers that broke off after they had begun: their clients saw a connection break.',
  ),
  bootReady: gauge(
    'nodehub_boot_ready',
    'Whether the node and all of its pods would come back now without a link: 1 or 0 (`nodehub inspect boot` has the reasons).',
  ),
  bootPodsNotReady: gauge(
    'nodehub_boot_pods_not_ready',
    'Pods that would not come back now without a link, by reason, several for one pod where there are: something it refers to is missing from the cache, absent in the cloud too, damaged, forbidden to this node; a token has expired; a claim is unbound, a volume unattached.',
    ['reason'],
  ),
  ready: gauge('nodehub_ready', 'Whether /readyz succeeds: 1 or 0.'),
  memoryLimit: gauge(
    'nodehub_memory_limit_bytes',
    'Memory limit of the process (--memory-limit, or that of its control group): beyond it requests are shed.',
  ),
  online: gauge('nodehub_online', 'Whether any API server answers its probes: 1 or 0.'),
  offlineSince: gauge(
    'nodehub_offline_since_timestamp_seconds',
    'When the hub went offline, in seconds since the epoch; 0 while it is online, or no probe has ended yet.',
  ),
  cacheAge: gauge(
    'nodehub_cache_age_seconds',
    'Seconds since the cloud last confirmed any recorded collection of a resource, by a list, an event or a bookmark.',
    ['resource'],
  ),
  storeFailures: counter('nodehub_store_failures_total', 'Writes the store did not take.'),
  storeBytes: gauge('nodehub_store_bytes', 'Size of the cache on the disk.'),
  storeLimit: gauge(
    'nodehub_store_limit_bytes',
    'Size limit of the cache on the disk (--cache-max-bytes).',
  ),
  storeDiskBytes: counter(
    'nodehub_store_disk_written_bytes_total',
    'Bytes that the store wrote to its log, with what compactions copy.',
  ),
  storeDamaged: counter(
    'nodehub_store_damaged_total',
    'Stored objects and documents that were found damaged and quarantined until they are read again from the cloud.',
  ),
  storeEvicted: counter(
    'nodehub_store_evicted_total',
    'Evicted objects and documents: old, confirmed longest ago, and the node does not boot with them; gone, objects that pods refer to, mostly of deleted pods.',
    { kind: ['old', 'gone'] },
  ),
  storeSetAside: counter(
    'nodehub_store_set_aside_total',
    'Logs of which no file could be used: the cache began empty.',
  ),
  hubAddressReachable: gauge(
    'nodehub_hub_address_reachable',
    'Whether pods are led to the hub (1): it answers at --hub-address, or at the dummy interface, with a certificate that they trust. Else (0) masterservice, serviceenvupdater and forwardkubesvctraffic do nothing.',
  ),
  filterErrors: counter('nodehub_filter_errors_total', 'Objects on which a filter failed.', [
    'filter',
  ]),
  filterDecisions: counter(
    'nodehub_filter_decisions_total',
    'Objects that a filter has withheld or edited, each time that one is shown; all watches that share a decision count once.',
    ['filter', 'result'],
  ),
  hostNetworkPods: gauge(
    'nodehub_host_network_pods',
    'Pods of this node by the network on which the kubelet is shown them: host, their spec requests it; propagated, it does not; pod.',
    ['kind'],
  ),
  hostNetworkPortClashes: gauge(
    'nodehub_host_network_port_clashes',
    'Ports that propagated pods share with other pods or with what a node usually has there (`nodehub inspect host-network` names them).',
  ),
  tracingSpans: counter(
    'nodehub_tracing_spans_total',
    'Spans of recorded traces (--tracing-endpoint), by result: exported, the collector has taken them; failed, it did not take them. Those beyond the bound of pending ones are not counted.',
    { result: ['exported', 'failed'] },
  ),
  recorded: counter(
    'nodehub_recorded_total',
    'Records written: objects, lists, documents, tokens, answers to reviews, and, as watch, commits of events (one may hold many).',
    { kind: ['object', 'list', 'watch', 'document', 'token', 'review'] },
  ),
  malformed: counter(
    'nodehub_upstream_malformed_answers_total',
    'Answers of API servers that could not be understood. One that is found before its first byte was passed on passes unrecorded; one found later is broken off.',
  ),
  upstreamConnections: gauge(
    'nodehub_upstream_connections',
    'Open connections to an API server, by protocol: http/1.1, or h2 for watches. Those of upgrades and probes are left out.',
    ['upstream', 'protocol'],
  ),
  cacherUpstreamWatches: gauge(
    'nodehub_cacher_upstream_watches',
    'Watches of API servers that cachers have open.',
  ),
  cacherWatchers: gauge('nodehub_cacher_watchers', 'Watches of clients that cachers serve.'),
  cacherWatchersEnded: counter(
    'nodehub_cacher_watchers_ended_total',
    'Watches served by cachers that the hub ended before their time, by reason: slow, the client had not read what the event log let go; expired, the client is answered 410, as the version has expired and something has changed since, or the cluster was restored from a backup; over, cleanly, as the API server refuses the upstream watch or the store does not take its events.',
    { reason: ['slow', 'expired', 'over'] },
  ),
  cacherBytes: gauge('nodehub_cacher_bytes', 'What the event logs of cachers take in memory.'),
  filterInputMissing: gauge(
    'nodehub_filter_input_missing',
    'Whether filters lack an input that the API server refuses, by resource: forbidden, the right is missing; absent, there is no such resource; refused, for another reason. They keep their last input.',
    ['resource', 'reason'],
  ),
  configMapReads: counter(
    'nodehub_config_map_reloads_total',
    "Times the hubs' ConfigMap was read again because it appeared, changed or was deleted: success, or failure, which leaves the last good one in force.",
    outcomes,
  ),
  configReloads: counter(
    'nodehub_config_reloads_total',
    'Times the configuration was read again while the hub ran: success, or failure, which leaves the last good one in force.',
    outcomes,
  ),
  configLastReload: gauge(
    'nodehub_config_last_reload_successful',
    'Whether the configuration in force is the one that was read last: 1, or 0 where that could not be used.',
  ),
  credentialsRefused: gauge(
    'nodehub_upstream_credentials_refused',
    "1 where an API server answered 401 to the hub's own credentials when they were shown to it last, else 0: the node is answered from the cache then. The check certificate of /readyz?verbose says why.",
    ['upstream'],
  ),
  certificateExpiry: gauge(
    'nodehub_certificate_expiry_timestamp_seconds',
    'When a certificate in use ends, in seconds since 1970: client, which the hub shows to API servers; serving, which it shows to clients over TLS.',
    ['certificate'],
  ),
  buildInfo: gauge(
    'nodehub_build_info',
    'Always 1: the versions of the hub and of the Node that runs it.',
    ['version', 'node'],
  ),
  yurthubServerHealthy: gauge(
    'node_yurthub_server_healthy_status',
    'Whether an API server is healthy: 1 or 0.',
    ['server'],
  ),
  yurthubInFlight: gauge(
    'node_yurthub_in_flight_requests_collector',
    'Requests for resources being served, watches and upgrades included.',
    ['verb', 'resource', 'subresources', 'client'],
  ),
  yurthubInFlightTotal: gauge('node_yurthub_in_flight_requests_total', 'The sum of these.'),
  yurthubTraffic: counter(
    'node_yurthub_proxy_traffic_collector',
    "Bytes of API servers' answers, without their heads, as they came over the link; upgrades left out.",
    ['client', 'verb', 'resource', 'subresources'],
  ),
  yurthubConnections: gauge(
    'node_yurthub_closable_conns_collector',
    'Open connections to an API server, by its host and port.',
    ['server'],
  ),
  yurthubErrorKeysStatus: gauge(
    'node_yurthub_error_keys_persistency_status',
    'Whether the store takes writes: 1 or 0.',
  ),
  yurthubErrorKeys: gauge(
    'node_yurthub_error_keys_count',
    'Collections and objects that could not be written to the cache.',
  ),
} as const

export type MetricTable = typeof metricTable
