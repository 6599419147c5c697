import { cutReasons, type MetricRow } from './table.ts'

/**
 * The metrics of `nodehub cluster`. prom-client adds those of the process (`process_`, `nodejs_`).
 */
export const clusterMetricTable = {
  leading: {
    name: 'nodehub_cluster_leading',
    type: 'gauge',
    help: 'Whether this replica leads: 1 or 0.',
    labels: [],
  },
  apiRequests: {
    name: 'nodehub_cluster_api_requests_total',
    type: 'counter',
    help: 'Requests to the API server, by verb and code; 0 where there was no answer.',
    labels: ['verb', 'code'],
  },
  writes: {
    name: 'nodehub_cluster_writes_total',
    type: 'counter',
    help: 'Objects that the controller wrote, by kind: node, pool, pool status.',
    labels: ['kind'],
    initialValues: { kind: ['node', 'pool', 'pool status'] },
  },
  conflicts: {
    name: 'nodehub_cluster_conflicts_total',
    type: 'counter',
    help: 'Writes that conflicted with another writer; they are retried if they are still due.',
    labels: ['kind'],
    initialValues: { kind: ['node', 'pool', 'pool status'] },
  },
  failures: {
    name: 'nodehub_cluster_failures_total',
    type: 'counter',
    help: 'What failed and is tried again, by part: controller, election, approver, certificates, configurations, admission.',
    labels: ['reason'],
    initialValues: {
      reason: ['controller', 'election', 'approver', 'certificates', 'configurations', 'admission'],
    },
  },
  nodes: {
    name: 'nodehub_cluster_nodes',
    type: 'gauge',
    help: 'Nodes that the controller knows; in the replica that leads.',
    labels: [],
  },
  pools: {
    name: 'nodehub_cluster_pools',
    type: 'gauge',
    help: 'NodePools that are known.',
    labels: [],
  },
  queued: {
    name: 'nodehub_cluster_queued',
    type: 'gauge',
    help: 'Nodes and pools in the work queue.',
    labels: [],
  },
  withheld: {
    name: 'nodehub_cluster_label_withheld_nodes',
    type: 'gauge',
    help: 'Nodes of host-network pools that do not carry the hostnetwork label yet, as pods on the pod network run there.',
    labels: [],
  },
  repairs: {
    name: 'nodehub_cluster_ca_bundle_repairs_total',
    type: 'counter',
    help: 'Corrections of the caBundle of a webhook configuration, by its kind.',
    labels: ['kind'],
    initialValues: {
      kind: [
        'MutatingWebhookConfiguration',
        'ValidatingWebhookConfiguration',
        'CustomResourceDefinition',
      ],
    },
  },
  certificateRequests: {
    name: 'nodehub_cluster_certificate_requests_total',
    type: 'counter',
    help: "Requests of nodes for their hubs' serving certificates that were decided, by result: approved, denied.",
    labels: ['result'],
    initialValues: { result: ['approved', 'denied'] },
  },
  reviewsRefused: {
    name: 'nodehub_cluster_reviews_refused_total',
    type: 'counter',
    help: 'Reviews that were refused before their body was there, by reason: full, slow-body, unauthenticated.',
    labels: ['reason'],
    initialValues: { reason: ['full', 'slow-body', 'unauthenticated'] },
  },
  certificateEnd: {
    name: 'nodehub_cluster_certificate_expiry_timestamp_seconds',
    type: 'gauge',
    help: 'When the serving certificate of the webhooks ends, in seconds since the epoch.',
    labels: [],
  },
  connectionsCut: {
    name: 'nodehub_cluster_connections_cut_total',
    type: 'counter',
    help: 'Connections to the operators’ port that were closed, by reason: full, stalled, pipelined, as of a hub.',
    labels: ['reason'],
    initialValues: { reason: cutReasons },
  },
  buildInfo: {
    name: 'nodehub_cluster_build_info',
    type: 'gauge',
    help: 'Always 1; the versions are its labels.',
    labels: ['version', 'node'],
  },
} as const satisfies Readonly<Record<string, MetricRow>>

export type ClusterMetricTable = typeof clusterMetricTable
