import t from 'tap'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { ownVersion } from '../../src/base/own-version.ts'
import { hubImageFlag } from '../../src/cli/join-flags.ts'
import type { Installation } from '../../src/cluster/install/installation.ts'
import { clusterManifests } from '../../src/cluster/install/manifests.ts'
import { nodeInstallers } from '../../src/cluster/install/nodes.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { noKustomizeOfCharts } from '../kit/kustomize.ts'

t.setTimeout(300_000)

const folder = 'packaging/cluster'
const chart = join(folder, 'chart')
const read = (file: string): string => readFileSync(file, 'utf8')

const skipWithout = (...names: readonly string[]): string | false => {
  const found = findBinaries(names)
  return 'missing' in found ? found.missing : false
}

const run = (program: string, ...args: readonly string[]): string => {
  const found = findBinaries([program])
  if ('missing' in found) throw new Error(found.missing)
  return execFileSync(found.paths[program] ?? program, args, { encoding: 'utf8', stdio: 'pipe' })
}

/** Without a cluster, Helm takes the version that it was built with for the API server's. */
const rendered = (...args: readonly string[]): ReadonlyMap<string, ApiObject> =>
  objects(parsed(run('helm', 'template', 'nodehub', chart, '--kube-version', '1.36.0', ...args)))

const withSet = (...set: readonly string[]): readonly string[] =>
  set.flatMap((each) => ['--set', each])

interface ApiObject {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec?: unknown
  readonly data?: Readonly<Record<string, string>>
}

/** By kind, namespace and name, as an API server would read them. */
const objects = (documents: readonly unknown[]): ReadonlyMap<string, ApiObject> =>
  new Map(
    (JSON.parse(JSON.stringify(documents)) as readonly ApiObject[]).map((each) => [
      `${each.kind} ${each.metadata.namespace ?? ''} ${each.metadata.name}`,
      each,
    ]),
  )

const parsed = (text: string): readonly unknown[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as unknown)
    .filter((document) => document !== null)

/** Without what Helm says of its release, and without the namespace, which Helm makes. */
const comparable = (all: ReadonlyMap<string, ApiObject>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    [...all]
      .filter(([, { kind }]) => kind !== 'Namespace')
      .map(([key, { metadata, ...rest }]) => {
        const { labels: _, annotations: __, ...named } = metadata
        return [key, { ...rest, metadata: named }]
      }),
  )

const usual: Installation = {
  name: 'nodehub-cluster',
  namespace: 'nodehub-system',
  image: hubImageFlag.default,
  podHostNetwork: false,
}

const cluster = (changes: Partial<Installation> = {}) =>
  comparable(objects(clusterManifests({ ...usual, ...changes })))

void t.test('the chart and its program are of the version of package.json', async (t) => {
  const { version, appVersion } = parse(read(`${chart}/Chart.yaml`)) as Record<string, string>
  t.strictSame([version, appVersion], [ownVersion(), ownVersion()])
})

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
}

/** Values that are objects of Kubernetes have no properties in the schema. */
const pathsOf = (schema: Schema, path = ''): readonly string[] =>
  schema.properties === undefined
    ? [path]
    : Object.entries(schema.properties).flatMap(([name, each]) => pathsOf(each, `${path}.${name}`))

const isIn = (values: unknown, path: string): boolean =>
  path
    .split('.')
    .slice(1)
    .every((name) => {
      const has = values !== null && typeof values === 'object' && Object.hasOwn(values, name)
      if (has) values = (values as Readonly<Record<string, unknown>>)[name]
      return has
    })

void t.test('values.yaml has each value of the schema', async (t) => {
  const schema = JSON.parse(read(`${chart}/values.schema.json`)) as Schema
  const values = parse(read(`${chart}/values.yaml`)) as unknown
  t.strictSame(
    pathsOf(schema).filter((path) => !isIn(values, path)),
    ['.global', '.admission'],
  )
})

void t.test('helm finds no fault in the chart', { skip: skipWithout('helm') }, async (t) => {
  for (const args of [[], ['--values', 'test/packaging/every-value.yaml']])
    t.match(
      run('helm', 'lint', '--strict', chart, '--kube-version', '1.36.0', ...args),
      '0 chart(s) failed',
    )
  for (const wrong of ['admission=webhook', 'imagee=x', 'image=x', 'apiServerCidrs={10.0.0.1}'])
    t.throws(() => rendered(...withSet(wrong)), wrong)
})

void t.test(
  'the chart renders to the objects of nodehub manifests, whatever its values',
  { skip: skipWithout('helm') },
  async (t) => {
    const cases: readonly (readonly [Partial<Installation>, readonly string[]])[] = [
      [{}, []],
      [
        { namespace: 'elsewhere', image: 'r.example:5000/n:v1' },
        ['image.repository=r.example:5000/n', 'image.tag=v1'],
      ],
      [
        { image: `localhost/nodehub@sha256:${'0'.repeat(64)}` },
        [`image.digest=sha256:${'0'.repeat(64)}`],
      ],
      [{}, ['admission=policies']],
      [{ podHostNetwork: true }, ['podHostNetwork=true']],
      [{ controllers: ['one', 'o"ther'] }, ['controllerUsers={one,o"ther}']],
      [
        {
          apiServerCidrs: ['10.0.0.1/32', '10.0.0.2/32'],
          opsCidrs: ['fd00::/8'],
          clientCa: 'front-ca',
        },
        [
          'apiServerCidrs={10.0.0.1/32,10.0.0.2/32}',
          'opsCidrs={fd00::/8}',
          'clientCaConfigMap=front-ca',
        ],
      ],
    ]
    for (const [changes, set] of cases) {
      const { namespace } = { ...usual, ...changes }
      const all = rendered('--namespace', namespace, ...withSet(...set))
      t.strictSame(comparable(all), cluster(changes), set.join(' '))
    }
    const nodes = { namespace: 'kube-system', image: usual.image }
    for (const [set, installation] of [
      [[], nodes],
      [
        ['nodes.namespace=edge', 'nodes.serverAddr=https://10.0.0.1:6443'],
        { ...nodes, namespace: 'edge', serverAddresses: 'https://10.0.0.1:6443' },
      ],
    ] as const) {
      const args = withSet('nodes.enabled=true', ...set)
      t.strictSame(comparable(rendered('--namespace', usual.namespace, ...args)), {
        ...cluster(),
        ...comparable(objects(nodeInstallers(installation))),
      })
    }
  },
)

void t.test(
  'the definition stays when a release is removed',
  { skip: skipWithout('helm') },
  (t) => {
    const pools = rendered().get('CustomResourceDefinition  nodepools.apps.openyurt.io')
    t.match(pools?.metadata.annotations, { 'helm.sh/resource-policy': 'keep' })
    t.end()
  },
)

void t.test('one replica has no disruption budget', { skip: skipWithout('helm') }, (t) => {
  const kinds = [...rendered(...withSet('replicas=1')).values()].map(({ kind }) => kind)
  t.notOk(kinds.includes('PodDisruptionBudget'))
  t.end()
})

void t.test(
  'with every value the objects have another name, alerts a runbook, and Grafana its dashboards',
  { skip: skipWithout('helm') },
  async (t) => {
    const all = rendered('--namespace', 'edge', '--values', 'test/packaging/every-value.yaml')
    const one = (kind: string, name: string): ApiObject | undefined =>
      all.get(`${kind} edge ${name}`)
    t.notMatch([...all.keys()], [/nodehub-cluster/])
    t.match(one('Deployment', 'pools')?.spec, {
      replicas: 3,
      template: {
        metadata: {
          labels: { team: 'edge', 'app.kubernetes.io/component': 'pools' },
          annotations: { 'example.com/scrape': 'no' },
        },
        spec: {
          serviceAccountName: 'pools',
          imagePullSecrets: [{ name: 'registry-key' }],
          priorityClassName: 'system-node-critical',
          nodeSelector: { 'kubernetes.io/os': 'linux' },
          tolerations: [{ operator: 'Exists' }],
          topologySpreadConstraints: [{ topologyKey: 'topology.kubernetes.io/zone' }],
          containers: [
            {
              image: 'registry.example.com/nodehub:edge',
              imagePullPolicy: 'Always',
              args: [
                'cluster',
                '--webhook-service=pools',
                '--lease-name=pools',
                '--certificate-secret=pools-certificates',
                '--pod-host-network',
                '--client-ca=/etc/nodehub/client-ca/ca.crt',
                '--log-level=debug',
                '--workers=32',
              ],
              env: [{ value: '--max-old-space-size=1280' }],
              resources: { requests: { memory: '256Mi' }, limits: { memory: '2Gi' } },
              volumeMounts: [{ name: 'client-ca' }, { name: 'serving' }],
            },
          ],
          volumes: [{ name: 'client-ca' }, { name: 'serving' }],
        },
      },
    })
    t.match(one('ServiceAccount', 'pools')?.metadata.annotations, { 'example.com/role': 'hub' })
    t.match(one('PodMonitor', 'pools'), {
      metadata: { labels: { release: 'prometheus' } },
      spec: {
        selector: { matchLabels: { 'app.kubernetes.io/component': 'pools' } },
        podMetricsEndpoints: [{ port: 'ops', interval: '15s' }],
      },
    })
    const rules = one('PrometheusRule', 'pools')
    t.match(rules?.metadata.labels, { release: 'prometheus' })
    const alerts = read(`${chart}/monitoring/alerts.yaml`).replaceAll(
      'runbook: docs/alerts.md#',
      'runbook_url: https://wiki.example.com/nodehub/alerts#',
    )
    t.match(alerts, 'runbook_url')
    t.strictSame(rules?.spec, parse(alerts))
    for (const file of ['node.json', 'fleet.json']) {
      const map = one('ConfigMap', `pools-dashboard-${file.replace('.json', '')}`)
      t.match(map?.metadata, {
        labels: { grafana_dashboard: '1' },
        annotations: { grafana_folder: 'nodehub' },
      })
      t.equal(map?.data?.[`nodehub-${file}`], read(`${chart}/monitoring/dashboards/${file}`))
    }
    t.match(all.get('DaemonSet kube-system nodehub-install')?.spec, {
      updateStrategy: { rollingUpdate: { maxUnavailable: '5%' } },
      template: { spec: { imagePullSecrets: [{ name: 'registry-key' }] } },
    })
  },
)

void t.test(
  'kustomize builds the chart to the objects of nodehub manifests, with the namespace',
  { skip: noKustomizeOfCharts() },
  async (t) => {
    const helm = findBinaries(['helm'])
    const command = 'missing' in helm ? helm.missing : helm.paths.helm
    const built = objects(
      parsed(run('kubectl', 'kustomize', '--enable-helm', '--helm-command', command, folder)),
    )
    t.strictSame(comparable(built), cluster())
    const [namespace] = clusterManifests(usual)
    t.strictSame(built.get('Namespace  nodehub-system'), namespace)
  },
)
