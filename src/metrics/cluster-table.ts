import { counter, cutReasons, gauge } from './table.ts'

const written = { kind: ['node', 'pool', 'pool status'] } as const

/**
 * The metrics of `nodehub cluster`. prom-client adds those of the process (`process_`, `nodejs_`).
 */
export const clusterMetricTable = {
  leading: gauge('nodehub_cluster_leading', 'Whether this replica leads: 1 or 0.'),
  apiRequests: counter(
    'nodehub_cluster_api_requests_total',
    'Requests to the API server, by verb and code; 0 where there was no answer.',
    ['verb', 'code'],
  ),
  writes: counter(
    'nodehub_cluster_writes_total',
    'Objects that the controller wrote, by kind: node, pool, pool status.',
    written,
  ),
  conflicts: counter(
    'nodehub_cluster_conflicts_total',
    'Writes that conflicted with a newer version of the object, which the controller itself may have written; they are retried if they are still due.',
    written,
  ),
  failures: counter(
    'nodehub_cluster_failures_total',
    'What failed and is tried again, by part: controller, election, approver, certificates, configurations, admission.',
    {
      reason: ['controller', 'election', 'approver', 'certificates', 'configurations', 'admission'],
    },
  ),
  nodes: gauge(
    'nodehub_cluster_nodes',
    'Nodes that the controller knows; in the replica that leads.',
  ),
  pools: gauge('nodehub_cluster_pools', 'NodePools that are known.'),
  queued: gauge('nodehub_cluster_queued', 'Nodes and pools in the work queue.'),
  withheld: gauge(
    'nodehub_cluster_label_withheld_nodes',
    'Nodes of host-network pools that do not carry the hostnetwork label yet, as pods on the pod network run there.',
  ),
  repairs: counter(
    'nodehub_cluster_ca_bundle_repairs_total',
    'Corrections of the caBundle of a webhook configuration, by its kind.',
    {
      kind: [
        'MutatingWebhookConfiguration',
        'ValidatingWebhookConfiguration',
        'CustomResourceDefinition',
      ],
    },
  ),
  certificateRequests: counter(
    'nodehub_cluster_certificate_requests_total',
    "Requests of nodes for their hubs' serving certificates that were decided, by result: approved, denied.",
    { result: ['approved', 'denied'] },
  ),
  reviewsRefused: counter(
    'nodehub_cluster_reviews_refused_total',
    'Reviews that were refused before their body was there, by reason: full, slow-body, unauthenticated.',
    { reason: ['full', 'slow-body', 'unauthenticated'] },
  ),
  certificateEnd: gauge(
    'nodehub_cluster_certificate_expiry_timestamp_seconds',
    'When the serving certificate of the webhooks ends, in seconds since the epoch.',
  ),
  connectionsCut: counter(
    'nodehub_cluster_connections_cut_total',
    'Connections to the operators’ port that were closed, by reason: full, stalled, pipelined, as of a hub.',
    { reason: cutReasons },
  ),
  buildInfo: gauge('nodehub_cluster_build_info', 'Always 1; the versions are its labels.', [
    'version',
    'node',
  ]),
} as const

export type ClusterMetricTable = typeof clusterMetricTable
