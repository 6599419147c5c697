import type { Row } from './dashboard.ts'

/** The node that is chosen at the top of the dashboard. */
const here = 'job="$job", instance="$instance"'

export const nodeRows: readonly Row[] = [
  {
    title: 'Now',
    panels: [
      {
        title: 'Ready',
        description: 'Whether /readyz passes.',
        type: 'stat',
        unit: 'bool',
        queries: [{ expr: `nodehub_ready{${here}}` }],
      },
      {
        title: 'Online',
        description: 'Whether any API server answers its probes.',
        type: 'stat',
        unit: 'bool',
        queries: [{ expr: `nodehub_online{${here}}` }],
      },
      {
        title: 'Would come back',
        description: 'Whether the node and its pods would survive a reboot without a link.',
        type: 'stat',
        unit: 'bool',
        queries: [{ expr: `nodehub_boot_ready{${here}}` }],
      },
      {
        title: 'First certificate ends in',
        description: 'The earliest end of the client and the serving certificate.',
        type: 'stat',
        unit: 's',
        queries: [
          {
            expr: `min(nodehub_certificate_expiry_timestamp_seconds{${here}}) - time()`,
          },
        ],
      },
      {
        title: 'Offline for',
        description: 'Empty while the hub is online.',
        type: 'stat',
        unit: 's',
        worseFrom: [900, 86_400],
        queries: [
          {
            expr: `time() - (nodehub_offline_since_timestamp_seconds{${here}} > 0)`,
          },
        ],
      },
      {
        title: 'Version',
        description: 'Of the hub.',
        type: 'stat',
        queries: [{ expr: `nodehub_build_info{${here}}`, legend: '{{version}}' }],
      },
    ],
  },
  {
    title: 'Requests',
    panels: [
      {
        title: 'Answers by source',
        description:
          'cloud: an API server; cache: the record; hub: the hub itself, such as a refusal.',
        type: 'timeseries',
        unit: 'reqps',
        queries: [
          {
            expr: `sum by (source) (rate(nodehub_requests_total{${here}}[$__rate_interval]))`,
            legend: '{{source}}',
          },
        ],
      },
      {
        title: 'Answers of 400 and above, by component',
        description: 'Offline, 503 is what was never read.',
        type: 'timeseries',
        unit: 'reqps',
        queries: [
          {
            expr: `sum by (component, code) (rate(nodehub_requests_total{${here}, code=~"[45].."}[$__rate_interval]))`,
            legend: '{{component}} {{code}}',
          },
        ],
      },
      {
        title: 'Time of an answer, 99 %',
        description: 'Without watches, logs and exec.',
        type: 'timeseries',
        unit: 's',
        queries: [
          {
            expr: `histogram_quantile(0.99, sum by (source, le) (rate(nodehub_request_duration_seconds_bucket{${here}}[$__rate_interval])))`,
            legend: '{{source}}',
          },
        ],
      },
      {
        title: 'Open watches',
        description: 'Of clients, and those that the hub has open at API servers for them.',
        type: 'timeseries',
        queries: [
          { expr: `nodehub_watches{${here}}`, legend: 'clients' },
          {
            expr: `sum(nodehub_cacher_upstream_watches{${here}})`,
            legend: 'upstream',
          },
        ],
      },
      {
        title: 'Shed and cut',
        description:
          'Requests shed for want of seats or memory, and connections closed by the hub.',
        type: 'timeseries',
        unit: 'reqps',
        queries: [
          {
            expr: `sum by (reason, priority_level) (rate(nodehub_requests_rejected_total{${here}}[$__rate_interval]))`,
            legend: 'shed {{reason}} {{priority_level}}',
          },
          {
            expr: `sum by (reason) (rate(nodehub_connections_cut_total{${here}}[$__rate_interval]))`,
            legend: 'cut {{reason}}',
          },
        ],
      },
    ],
  },
  {
    title: 'API servers and the link',
    panels: [
      {
        title: 'Healthy',
        description: 'By its probes: 1 or 0.',
        type: 'timeseries',
        queries: [
          {
            expr: `nodehub_upstream_healthy{${here}}`,
            legend: '{{upstream}}',
          },
        ],
      },
      {
        title: 'Time to the head of an answer, 90 %',
        description: 'Watches included.',
        type: 'timeseries',
        unit: 's',
        queries: [
          {
            expr: `histogram_quantile(0.9, sum by (upstream, le) (rate(nodehub_upstream_request_duration_seconds_bucket{${here}}[$__rate_interval])))`,
            legend: '{{upstream}}',
          },
        ],
      },
      {
        title: 'Failed requests',
        description: 'Without an answer; and answers that were no API server’s.',
        type: 'timeseries',
        unit: 'reqps',
        queries: [
          {
            expr: `sum by (upstream) (rate(nodehub_upstream_requests_total{${here}, outcome="failed"}[$__rate_interval]))`,
            legend: '{{upstream}}',
          },
          {
            expr: `rate(nodehub_upstream_malformed_answers_total{${here}}[$__rate_interval])`,
            legend: 'malformed',
          },
        ],
      },
      {
        title: 'Bytes over the link, by component',
        description: 'Bodies of answers, as they came.',
        type: 'timeseries',
        unit: 'Bps',
        queries: [
          {
            expr: `topk(10, sum by (client, resource) (rate(node_yurthub_proxy_traffic_collector{${here}}[$__rate_interval])))`,
            legend: '{{client}} {{resource}}',
          },
        ],
      },
    ],
  },
  {
    title: 'What a reboot without a link would find',
    panels: [
      {
        title: 'Pods that would not come back',
        description: '`nodehub inspect boot` names them.',
        type: 'timeseries',
        queries: [
          {
            expr: `nodehub_boot_pods_not_ready{${here}}`,
            legend: '{{reason}}',
          },
        ],
      },
      {
        title: 'Age of records',
        description: 'Since the cloud last confirmed any collection of the resource.',
        type: 'timeseries',
        unit: 's',
        queries: [
          {
            expr: `topk(10, nodehub_cache_age_seconds{${here}})`,
            legend: '{{resource}}',
          },
        ],
      },
      {
        title: 'Cache on the disk',
        description: 'And what it may take.',
        type: 'timeseries',
        unit: 'bytes',
        queries: [
          { expr: `nodehub_store_bytes{${here}}`, legend: 'used' },
          { expr: `nodehub_store_limit_bytes{${here}}`, legend: 'limit' },
        ],
      },
      {
        title: 'Faults of the store',
        description: 'Writes that it did not take, damaged records, evictions.',
        type: 'timeseries',
        queries: [
          {
            expr: `increase(nodehub_store_failures_total{${here}}[$__rate_interval])`,
            legend: 'failed writes',
          },
          {
            expr: `increase(nodehub_store_damaged_total{${here}}[$__rate_interval])`,
            legend: 'damaged',
          },
          {
            expr: `sum by (kind) (increase(nodehub_store_evicted_total{${here}}[$__rate_interval]))`,
            legend: 'evicted {{kind}}',
          },
        ],
      },
    ],
  },
  {
    title: 'Filters and the process',
    panels: [
      {
        title: 'Decisions of filters',
        description: 'Objects withheld or edited, and those at which a filter failed.',
        type: 'timeseries',
        queries: [
          {
            expr: `sum by (filter, result) (increase(nodehub_filter_decisions_total{${here}}[$__rate_interval]))`,
            legend: '{{filter}} {{result}}',
          },
          {
            expr: `sum by (filter) (increase(nodehub_filter_errors_total{${here}}[$__rate_interval]))`,
            legend: '{{filter}} failed',
          },
        ],
      },
      {
        title: 'Memory',
        description: 'Of the process, and what it may use before it sheds requests.',
        type: 'timeseries',
        unit: 'bytes',
        queries: [
          {
            expr: `process_resident_memory_bytes{${here}}`,
            legend: 'resident',
          },
          { expr: `nodehub_memory_limit_bytes{${here}}`, legend: 'limit' },
        ],
      },
      {
        title: 'CPU',
        description: 'In cores.',
        type: 'timeseries',
        queries: [
          {
            expr: `rate(process_cpu_seconds_total{${here}}[$__rate_interval])`,
            legend: 'used',
          },
        ],
      },
    ],
  },
]
