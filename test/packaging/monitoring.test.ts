/**
 * Alert rules and dashboards: what they name is there, promtool understands it, each alert fires in
 * a test of the rules and has its section on a page of alerts.
 */
import t, { type Test } from 'tap'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { clusterMetricTable } from '../../src/metrics/cluster-table.ts'
import { workload } from '../../src/cluster/install/workload.ts'
import { createClusterMetrics, createMetrics } from '../../src/metrics/metrics.ts'
import { metricTable, type MetricRow } from '../../src/metrics/table.ts'
import { promtool } from '../kit/promtool.ts'

const folder = 'packaging/monitoring'
const ofChart = 'packaging/cluster/chart/monitoring'
const rules = `${ofChart}/alerts.yaml`
const ruleTests = `${folder}/alerts.test.yaml`
const read = (path: string) => readFileSync(path, 'utf8')

/** Each dashboard by the name of its file. */
const dashboards: Readonly<Record<string, object>> = Object.fromEntries(
  globSync('*.json', { cwd: `${ofChart}/dashboards` }).map((file) => [
    file,
    JSON.parse(read(`${ofChart}/dashboards/${file}`)) as object,
  ]),
)

interface Alert {
  readonly alert: string
  readonly expr: string
  readonly annotations: Readonly<Record<string, string>>
}

const alerts = (
  parse(read(rules)) as { readonly groups: readonly { readonly rules: readonly Alert[] }[] }
).groups.flatMap((group) => group.rules)

/** Each query of the dashboards, with what Grafana would put in its place. */
const queries = Object.values(dashboards).flatMap((dashboard) =>
  (JSON.stringify(dashboard).match(/"expr":"(?:[^"\\]|\\.)*"/g) ?? []).map((member) =>
    (JSON.parse(`{${member}}`) as { readonly expr: string }).expr.replaceAll(
      '$__rate_interval',
      '5m',
    ),
  ),
)

/** The labels of each sample that can be scraped. */
async function labelsOfSamples(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const rows: readonly MetricRow[] = [metricTable, clusterMetricTable].flatMap((table) =>
    Object.values<MetricRow>(table),
  )
  const samples = new Map<string, ReadonlySet<string>>([['up', new Set()]])
  for (const metrics of [createMetrics(), createClusterMetrics()]) {
    const { body } = await metrics.exposition()
    for (const [, name = '', type] of body.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
      const labels = rows.find((row) => row.name === name)?.labels ?? []
      const endings = type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
      for (const ending of endings) samples.set(name + ending, new Set([...labels, 'le']))
    }
  }
  return samples
}

/** Those that Prometheus adds to each sample. */
const scraped = new Set(['job', 'instance'])

/** The values that a label of a metric has from the start; none: it may have any. */
const valuesOf = (metric: string, label: string): readonly string[] =>
  [metricTable, clusterMetricTable]
    .flatMap((table) => Object.values<MetricRow>(table))
    .filter(({ name }) => name === metric)
    .flatMap(
      ({ initialValues }) =>
        Object.entries(initialValues).find(([name]) => name === label)?.[1] ?? [],
    )

/** Each selector of a query: a metric, and the labels and values that it asks for. */
const selectorsIn = (expr: string) =>
  [...expr.matchAll(/\b((?:nodehub|node_yurthub|process|nodejs)_\w+|up)\b(?:\{([^}]*)\})?/g)].map(
    ([, metric = '', matchers = '']) => ({
      metric,
      labels: [...matchers.matchAll(/(\w+)\s*[=!][=~]?\s*"([^"]*)"/g)].map(
        ([, label = '', values = '']) => ({ label, values: values.split('|') }),
      ),
    }),
  )

void t.test('every metric, label and value of an alert or a dashboard exists', async (t) => {
  const samples = await labelsOfSamples()
  t.ok(alerts.length > 20 && queries.length > 40)
  for (const expr of [...alerts.map((rule) => rule.expr), ...queries]) {
    const selectors = selectorsIn(expr)
    t.ok(selectors.length > 0, expr)
    for (const { metric, labels } of selectors) {
      t.ok(samples.has(metric), `${metric} in ${expr}`)
      for (const { label, values } of labels) {
        t.ok(scraped.has(label) || samples.get(metric)?.has(label), `${label} of ${metric}`)
        const possible = valuesOf(metric, label)
        for (const value of possible.length > 0 ? values : [])
          t.ok(possible.includes(value), `${label}="${value}" of ${metric}`)
      }
    }
  }
})

/** Of yurthub, and said to be missing here. */
const notHere =
  /^node_yurthub_(?:aggregated_in_flight_requests|target_for_multiplexer_requests)_collector$/

void t.test('every metric that a document names exists', async (t) => {
  const { body } = await createMetrics().exposition()
  const cluster = await createClusterMetrics().exposition()
  const present = new Set(
    [...(body + cluster.body).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name),
  )
  const documents = globSync(['*.md', 'docs/**/*.md'], { exclude: ['CHANGELOG.md'] })
  const named = documents.flatMap((document) =>
    [...read(document).matchAll(/\b(?:nodehub|node_yurthub)_\w+\w\b/g)].map(([name]) => name),
  )
  t.ok(named.length > 80)
  for (const name of new Set(named)) {
    const metric = name.replace(/_(?:bucket|sum|count)$/, '')
    t.ok(notHere.test(name) || present.has(name) || present.has(metric), name)
  }
})

void t.test('every alert names its section on a page, and no other is there', async (t) => {
  const sections = ['docs/alerts.md'].flatMap((page) =>
    [...read(page).matchAll(/^##+ (Nodehub\w+)\n\n(?=\S)/gm)].map(([, name = '']) => [
      name,
      `${page}#${name.toLowerCase()}`,
    ]),
  )
  t.strictSame(
    sections,
    alerts.map(({ alert, annotations }) => [alert, annotations['runbook']]),
  )
})

void t.test('every alert fires in a test of the rules', async (t) => {
  const expected = new Set(
    [...read(ruleTests).matchAll(/alertname="(\w+)"/g)].map(([, name]) => name),
  )
  for (const { alert } of alerts) t.ok(expected.has(alert), alert)
})

interface Deployment {
  readonly kind: string
  readonly metadata: { readonly namespace: string }
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> }
      readonly spec: {
        readonly containers: readonly {
          readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
        }[]
      }
    }
  }
}

interface Placed {
  readonly id: number
  readonly type: string
  readonly gridPos: {
    readonly x: number
    readonly y: number
    readonly w: number
    readonly h: number
  }
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[]
}

void t.test('Grafana can lay out each dashboard, and knows its variables', async (t) => {
  for (const [file, dashboard] of Object.entries(dashboards)) {
    const { panels, templating } = dashboard as {
      readonly panels: readonly Placed[]
      readonly templating: { readonly list: readonly { readonly name: string }[] }
    }
    t.equal(new Set(panels.map(({ id }) => id)).size, panels.length, `${file}: ids`)
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    )
    t.equal(new Set(cells).size, cells.length, `${file}: no panel lies on another`)
    t.ok(
      panels.every(({ gridPos: { x, w } }) => x + w <= 24),
      `${file}: none is wider than the page`,
    )
    const known = new Set([...templating.list.map(({ name }) => name), '__rate_interval'])
    const used = JSON.stringify(dashboard).matchAll(/\$\{?(\w+)\}?/g)
    for (const [word, name = ''] of used) t.ok(known.has(name), `${file}: ${word}`)
    for (const { id, type, targets = [] } of panels)
      t.equal(targets.length > 0, type !== 'row', `${file}: panel ${id} asks for something`)
  }
})

/** Runs promtool, which has to be content. */
async function accepts(t: Pick<Test, 'equal'>, ...argv: readonly string[]): Promise<void> {
  const { code, output } = await promtool.run(argv)
  t.equal(code, 0, output)
}

const skip = promtool.missing

void t.test('promtool understands the alert rules', { skip }, (t) =>
  accepts(t, 'check', 'rules', rules),
)

void t.test('alerts fire when they should, and only then', { skip }, (t) =>
  accepts(t, 'test', 'rules', ruleTests),
)

void t.test('promtool understands every query of a dashboard', { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'nodehub-queries-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'queries.yaml')
  const recorded = queries.map((expr, i) => ({ record: `query${i}`, expr }))
  writeFileSync(file, stringify({ groups: [{ name: 'dashboards', rules: recorded }] }))
  await accepts(t, 'check', 'rules', file)
})

interface ScrapeOfCluster {
  readonly scrape_configs: readonly [
    {
      readonly job_name: string
      readonly kubernetes_sd_configs: readonly [
        { readonly namespaces: { readonly names: readonly string[] } },
      ]
      readonly relabel_configs: readonly [{ readonly regex: string }]
    },
  ]
}

void t.test('the cluster’s side is scraped where its manifests put it', (t) => {
  const [scrape] = (parse(read(`${folder}/cluster.yaml`)) as ScrapeOfCluster).scrape_configs
  const deployment = (
    workload({
      name: 'nodehub-cluster',
      namespace: 'nodehub-system',
      image: 'nodehub:1',
      podHostNetwork: false,
    }) as readonly Deployment[]
  ).find(({ kind }) => kind === 'Deployment')
  const { labels } = deployment?.spec.template.metadata ?? { labels: {} }
  const ports = deployment?.spec.template.spec.containers.flatMap((each) => each.ports) ?? []
  const ops = ports.find(({ containerPort }) => containerPort === 10287)
  t.strictSame(scrape.kubernetes_sd_configs[0].namespaces.names, [deployment?.metadata.namespace])
  t.equal(scrape.relabel_configs[0].regex, `${labels['app.kubernetes.io/component']};${ops?.name}`)
  t.match(read(ruleTests), `job="${scrape.job_name}"`)
  t.end()
})

void t.test('the regex of docs/monitoring.md keeps metrics of most alerts', async (t) => {
  const [, yaml = ''] =
    /```yaml\n(- source_labels[\s\S]*?)```/.exec(read('docs/monitoring.md')) ?? []
  const [rule] = parse(yaml) as readonly { readonly regex: string }[]
  // Prometheus anchors it.
  const kept = new RegExp(`^(?:${rule?.regex})$`)
  const blind = alerts.filter(({ alert, expr }) =>
    selectorsIn(expr).some(
      ({ metric }) => metric !== 'up' && !alert.startsWith('NodehubCluster') && !kept.test(metric),
    ),
  )
  t.strictSame(
    blind.map(({ alert }) => alert),
    ['NodehubUpstreamSlow', 'NodehubRequestsRefused', 'NodehubConfigMapRejected'],
  )
})
