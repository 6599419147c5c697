import type { Row } from './dashboard.ts'

/** All nodes. */
const here = 'job="$job"'

export const fleetRows: readonly Row[] = [
  {
    title: 'Now',
    panels: [
      {
        title: 'Nodes',
        description: 'Whose metrics arrive.',
        type: 'stat',
        queries: [{ expr: `count(nodehub_build_info{${here}})` }],
      },
      {
        title: 'Silent',
        description: 'Nodes that sent metrics within six hours, and do not now.',
        type: 'stat',
        worseFrom: [1, 100],
        queries: [
          {
            expr: `count(group by (instance) (last_over_time(nodehub_build_info{${here}}[6h])) unless on (instance) nodehub_build_info{${here}}) or vector(0)`,
          },
        ],
      },
      {
        title: 'Offline',
        description: 'Nodes that reach no API server.',
        type: 'stat',
        worseFrom: [1, 100],
        queries: [{ expr: `count(nodehub_online{${here}} == 0) or vector(0)` }],
      },
      {
        title: 'Not ready',
        description: 'Nodes whose /readyz fails.',
        type: 'stat',
        worseFrom: [1, 10],
        queries: [{ expr: `count(nodehub_ready{${here}} == 0) or vector(0)` }],
      },
      {
        title: 'Would not come back',
        description: 'Nodes that would lose pods in a reboot without a link.',
        type: 'stat',
        worseFrom: [1, 100],
        queries: [{ expr: `count(nodehub_boot_ready{${here}} == 0) or vector(0)` }],
      },
      {
        title: 'Certificates that end within a week',
        description: 'Client and serving certificates.',
        type: 'stat',
        worseFrom: [1, 10],
        queries: [
          {
            expr: `count(nodehub_certificate_expiry_timestamp_seconds{${here}} - time() < 604800) or vector(0)`,
          },
        ],
      },
    ],
  },
  {
    title: 'Over time',
    panels: [
      {
        title: 'Nodes by state',
        description: 'A step down of all of them at once is a link that they share.',
        type: 'timeseries',
        queries: [
          { expr: `count(nodehub_online{${here}} == 1)`, legend: 'online' },
          { expr: `count(nodehub_online{${here}} == 0)`, legend: 'offline' },
        ],
      },
      {
        title: 'Versions',
        description: 'How far a rollout has come.',
        type: 'timeseries',
        queries: [
          { expr: `count by (version) (nodehub_build_info{${here}})`, legend: '{{version}}' },
        ],
      },
      {
        title: 'Answers by source',
        description: 'Of all nodes.',
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
        title: 'Time to the head of an answer of an API server, 90 %',
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
        title: 'Bytes over all links',
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
    title: 'Where to look',
    panels: [
      {
        title: 'Longest offline',
        description: 'In seconds.',
        type: 'table',
        unit: 's',
        queries: [
          {
            expr: `topk(20, time() - (nodehub_offline_since_timestamp_seconds{${here}} > 0))`,
          },
        ],
      },
      {
        title: 'Most requests shed',
        description: 'Of the node itself and of workloads, within an hour.',
        type: 'table',
        queries: [
          {
            expr: `topk(20, sum by (instance, reason) (increase(nodehub_requests_rejected_total{${here}, priority_level=~"node|workload"}[1h])) > 0)`,
          },
        ],
      },
      {
        title: 'Stores with faults',
        description: 'Failed writes and damaged records, within an hour.',
        type: 'table',
        queries: [
          {
            expr: `topk(20, increase(nodehub_store_failures_total{${here}}[1h]) + increase(nodehub_store_damaged_total{${here}}[1h]) > 0)`,
          },
        ],
      },
      {
        title: 'Configuration refused',
        description: 'Nodes that run with an older configuration than their file has.',
        type: 'table',
        queries: [{ expr: `nodehub_config_last_reload_successful{${here}} == 0` }],
      },
    ],
  },
]
