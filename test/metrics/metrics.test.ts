import t from 'tap'
import { createClusterMetrics, createMetrics, mostSeries } from '../../src/metrics/metrics.ts'
import { clusterMetricTable } from '../../src/metrics/cluster-table.ts'
import { metricTable, type MetricRow } from '../../src/metrics/table.ts'
import type { Label } from '../../src/metrics/labels.ts'
import { promtool } from '../kit/promtool.ts'

const samples = async (metrics: ReturnType<typeof createMetrics>, name: string) =>
  (await metrics.exposition()).body.split('\n').filter((line) => line.startsWith(name))

const request = {
  verb: 'get',
  resource: 'pods',
  component: 'kubelet',
  code: '200',
  source: 'cloud',
}

void t.test('every metric of the table is exposed with its type and help', async (t) => {
  const { body, contentType } = await createMetrics().exposition()
  t.match(contentType, 'text/plain')
  for (const { name, type, help } of Object.values(metricTable)) {
    t.ok(body.includes(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`), name)
  }
  t.match(body, /^process_resident_memory_bytes \d/m)
})

void t.test('a request is counted under its labels', async (t) => {
  const metrics = createMetrics()
  metrics.requests.add(request)
  metrics.requests.add(request, 2)
  t.strictSame(await samples(metrics, 'nodehub_requests_total'), [
    'nodehub_requests_total{verb="get",resource="pods",component="kubelet",code="200",source="cloud"} 3',
  ])
})

void t.test('what was told once is not told again, and counts go on from it', async (t) => {
  const metrics = createMetrics()
  const count = async () => {
    const [sample = ''] = await samples(metrics, 'nodehub_requests_total')
    return Number(sample.split(' ').at(-1))
  }
  metrics.requests.add(request)
  t.equal(await count(), 1)
  t.equal(await count(), 1)
  metrics.requests.add(request)
  metrics.onRead(() => metrics.requests.add(request))
  t.equal(await count(), 3, 'with what is counted for being read')
  t.equal(await count(), 4)
})

void t.test('what a client makes up ends in one series', async (t) => {
  const metrics = createMetrics(() => new Set(['our-agent']))
  for (let i = 0; i < 50; i++) {
    metrics.requests.add({
      verb: `verb${i}`,
      resource: `things${i}`,
      component: `scanner${i}`,
      code: String(1000 + i),
      source: 'hub',
    })
  }
  metrics.requests.add({ ...request, component: 'our-agent' })
  t.strictSame(await samples(metrics, 'nodehub_requests_total'), [
    'nodehub_requests_total{verb="other",resource="other",component="other",code="other",source="hub"} 50',
    'nodehub_requests_total{verb="get",resource="pods",component="our-agent",code="200",source="cloud"} 1',
  ])
})

void t.test(
  'a request that is for no resource has an empty resource, not another one',
  async (t) => {
    const metrics = createMetrics()
    metrics.requests.add({ ...request, resource: '' })
    t.match(await samples(metrics, 'nodehub_requests_total'), [/resource=""/])
  },
)

void t.test('traffic is told when it is asked for, each byte once', async (t) => {
  const metrics = createMetrics()
  const labels = { verb: 'list', resource: 'pods', subresources: '', client: 'kubelet' }
  const traffic = metrics.traffic(labels)
  t.equal(metrics.traffic({ ...labels }), traffic)
  traffic.receivedBytes += 10
  traffic.inFlight++
  const bytes = () => samples(metrics, 'node_yurthub_proxy_traffic_collector{')
  t.match(await bytes(), [/} 10$/])
  traffic.receivedBytes += 5
  t.match(await bytes(), [/} 15$/])
  t.match(await bytes(), [/} 15$/])
  t.strictSame(await samples(metrics, 'node_yurthub_in_flight_requests_total'), [
    'node_yurthub_in_flight_requests_total 1',
  ])
})

void t.test('a component that is named later has series of its own from then on', async (t) => {
  const components = new Set<string>()
  const metrics = createMetrics(() => components)
  metrics.requests.add({ ...request, component: 'agent' })
  components.add('agent')
  metrics.requests.add({ ...request, component: 'agent' })
  t.match(await samples(metrics, 'nodehub_requests_total'), [
    /component="other".* 1$/,
    /component="agent".* 1$/,
  ])
})

void t.test('of known words, too, a client cannot make series without end', async (t) => {
  const components = Array.from({ length: 50 }, (_, i) => `agent${i}`)
  const metrics = createMetrics(() => new Set(components))
  for (const component of components) {
    for (const verb of ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']) {
      for (const resource of ['pods', 'nodes', 'secrets', 'events', 'leases', 'services', 'jobs']) {
        metrics.requests.add({ ...request, verb, resource, component })
        metrics.traffic({ verb, resource, subresources: '', client: component }).receivedBytes++
      }
    }
  }
  for (const name of ['nodehub_requests_total{', 'node_yurthub_proxy_traffic_collector{']) {
    const series = await samples(metrics, name)
    t.equal(series.length, mostSeries + 1)
    t.match(series.at(-1), /resource="other".*} 450$/)
  }
})

void t.test('what has happened to nobody yet is there with 0, and then counted', async (t) => {
  const metrics = createMetrics()
  const reloads = 'nodehub_config_reloads_total{'
  t.strictSame(await samples(metrics, reloads), [
    `${reloads}result="success"} 0`,
    `${reloads}result="failure"} 0`,
  ])
  t.equal((await samples(metrics, 'nodehub_requests_rejected_total{')).length, 9, 'each with each')
  metrics.configReloads.add({ result: 'failure' })
  t.strictSame(await samples(metrics, reloads), [
    `${reloads}result="success"} 0`,
    `${reloads}result="failure"} 1`,
  ])
})

/** Their values are known when a client, an API server or a filter comes. */
const openLabels: ReadonlySet<Label> = new Set([
  'verb',
  'resource',
  'component',
  'client',
  'code',
  'upstream',
  'filter',
])

void t.test('a counter whose labels have known values has series from the start', async (t) => {
  for (const [table, metrics] of [
    [metricTable, createMetrics()],
    [clusterMetricTable, createClusterMetrics()],
  ] as const) {
    const { body } = await metrics.exposition()
    for (const { name, type, labels } of Object.values<MetricRow>(table)) {
      if (type !== 'counter' || labels.some((label) => openLabels.has(label))) continue
      // Each result has reasons of its own, also those of a pod's obstacles.
      t.match(body, new RegExp(`^${name}(\\{.*\\})? 0$`, 'm'), name)
    }
  }
})

/** Names of yurthub and of prom-client, which are not ours to choose. */
const foreign = /^(node_yurthub|nodejs)_/

void t.test(
  'promtool finds nothing in the names and texts of metrics',
  { skip: promtool.missing },
  async (t) => {
    for (const metrics of [createMetrics(), createClusterMetrics()]) {
      const { body } = await metrics.exposition()
      const { output } = await promtool.run(['check', 'metrics'], body)
      t.strictSame(
        output.split('\n').filter((line) => line !== '' && !foreign.test(line)),
        [],
      )
    }
  },
)
