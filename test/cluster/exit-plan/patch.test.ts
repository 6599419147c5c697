import t from 'tap'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { listAt, valueAt } from '../../../src/api/kube/json-at.ts'
import { hostNetworkLabel } from '../../../src/api/kube/node-pool.ts'
import { patchOf } from '../../../src/cluster/exit-plan/patch.ts'
import { stuckFor } from '../../../src/cluster/exit-plan/remarks.ts'

const options = { intent: 'host-network', nodeSelector: {} } as const

const workload = (kind: string, podSpec: JsonObject, spec: JsonObject = {}): JsonObject => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name: 'a', namespace: 'shop' },
  spec: { selector: { matchLabels: { app: 'a' } }, template: { spec: podSpec }, ...spec },
})

const withPorts = (...ports: JsonObject[]): JsonObject => ({
  containers: [{ name: 'main', image: 'i', ports }],
})

const portsOf = (object: JsonObject | undefined) =>
  listAt(object, 'spec', 'template', 'spec', 'containers').map((each) => valueAt(each, 'ports'))

void t.test('a port with two protocols is two ports', (t) => {
  const both = withPorts(
    { containerPort: 53, protocol: 'TCP' },
    { containerPort: 53, protocol: 'UDP' },
  )
  const patch = patchOf(workload('DaemonSet', both), options)
  t.strictSame(portsOf(patch?.after), [
    [
      { containerPort: 53, protocol: 'TCP', hostPort: 53 },
      { containerPort: 53, protocol: 'UDP', hostPort: 53 },
    ],
  ])
  t.end()
})

void t.test(
  'ports that only a probe names are declared, once, and a mapped one is its own',
  (t) => {
    const probed = {
      containers: [
        { name: 'main', ports: [{ containerPort: 80, hostPort: 8080 }] },
        {
          name: 'side',
          livenessProbe: { httpGet: { port: 80 } },
          readinessProbe: { grpc: { port: 90 } },
        },
        { name: 'third', readinessProbe: { tcpSocket: { port: 90 } } },
      ],
    }
    const patch = patchOf(workload('DaemonSet', probed), options)
    t.strictSame(portsOf(patch?.after), [
      [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }],
      [{ containerPort: 90, hostPort: 90, protocol: 'TCP' }],
      undefined,
    ])
    t.end()
  },
)

void t.test('a workload without ports keeps its strategy and affinity', (t) => {
  const { body } =
    patchOf(workload('Deployment', { containers: [{ name: 'main' }] }), options) ?? {}
  t.strictSame(body, { spec: { template: { spec: { hostNetwork: true } } } })
  t.end()
})

void t.test('a strategy that lets a pod go first stays', (t) => {
  const strategyOf = (strategy: JsonObject) =>
    valueAt(
      patchOf(workload('Deployment', withPorts({ containerPort: 80 }), { strategy }), options)
        ?.after,
      'spec',
      'strategy',
    )
  const rolling = (maxSurge: number, maxUnavailable: number | string) => ({
    type: 'RollingUpdate',
    rollingUpdate: { maxSurge, maxUnavailable },
  })
  t.strictSame(strategyOf(rolling(1, '50%')), rolling(0, '50%'))
  t.strictSame(strategyOf(rolling(1, 0)), rolling(0, 1))
  t.strictSame(strategyOf({ type: 'Recreate' }), { type: 'Recreate' })
  t.end()
})

void t.test('affinity that is there stays, and a second patch adds nothing', (t) => {
  const other = { topologyKey: 'zone', labelSelector: { matchLabels: { app: 'b' } } }
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [other] } }
  const spec = { ...withPorts({ containerPort: 80 }), affinity }
  const once = patchOf(workload('StatefulSet', spec), options)?.after ?? {}
  const way = ['spec', 'template', 'spec', 'affinity', 'podAntiAffinity'] as const
  const terms = (object: JsonObject | undefined) =>
    listAt(object, ...way, 'requiredDuringSchedulingIgnoredDuringExecution')
  t.equal(terms(once).length, 2)
  t.strictSame(patchOf(once, options)?.after, once)
  t.end()
})

void t.test('owners that are kept off get affinity and nothing of the host network', (t) => {
  const keepOff = { ...options, intent: 'keep-off' } as const
  const { body } = patchOf(workload('DaemonSet', withPorts({ containerPort: 80 })), keepOff) ?? {}
  const terms = [
    { matchExpressions: [{ key: hostNetworkLabel, operator: 'NotIn', values: ['true'] }] },
  ]
  t.strictSame(body, {
    spec: {
      template: {
        spec: {
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms },
            },
          },
        },
      },
    },
  })
  t.end()
})

void t.test('the template of a CronJob is that of its Jobs', (t) => {
  const cronJob = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'a' },
    spec: { jobTemplate: { spec: { template: { spec: withPorts({ containerPort: 80 }) } } } },
  }
  const patch = patchOf(cronJob, options)
  t.match(patch?.after, {
    spec: {
      jobTemplate: {
        spec: {
          template: {
            spec: { hostNetwork: true, containers: [{ image: 'i', ports: [{ hostPort: 80 }] }] },
          },
        },
      },
    },
  })
  t.end()
})

void t.test('an owner is left whose partition holds pods back', (t) => {
  const reasonsFor = (kind: string, partition: number) => {
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { partition } }
    const template = { template: { spec: withPorts({ containerPort: 80 }) }, updateStrategy }
    const workloadTemplate = { statefulSetTemplate: { spec: template } }
    const spec = kind === 'StatefulSet' ? template : { workload: { workloadTemplate } }
    return stuckFor({ kind, object: { apiVersion: 'apps/v1', kind, spec } })
  }
  for (const kind of ['StatefulSet', 'YurtAppSet']) {
    t.match(reasonsFor(kind, 1), [/its partition holds pods back/])
    t.strictSame(reasonsFor(kind, 0), [])
  }
  t.end()
})
