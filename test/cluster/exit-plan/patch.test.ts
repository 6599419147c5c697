import t from 'tap'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { listAt, valueAt } from '../../../src/api/kube/json-at.ts'
import { hostNetworkLabel } from '../../../src/api/kube/node-pool.ts'
import { patchOf } from '../../../src/cluster/exit-plan/patch.ts'
import { recreated } from '../../../src/cluster/exit-plan/recreate.ts'
import { stuckFor } from '../../../src/cluster/exit-plan/remarks.ts'

const options = { intent: 'host-network', nodeSelector: {}, oneAtATime: false } as const

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

void t.test(
  'a strategy that lets a pod go first stays, unless a disruption budget covers it',
  (t) => {
    const strategyOf = (strategy: JsonObject, oneAtATime = false, replicas = 8) =>
      valueAt(
        patchOf(workload('Deployment', withPorts({ containerPort: 80 }), { replicas, strategy }), {
          ...options,
          oneAtATime,
        })?.after,
        'spec',
        'strategy',
      )
    const half = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: '50%' } }
    const rolling = (maxUnavailable: number | string) => ({
      type: 'RollingUpdate',
      rollingUpdate: { maxSurge: 0, maxUnavailable },
    })
    t.strictSame(strategyOf(half), rolling('50%'))
    t.strictSame(strategyOf(half, true), rolling(1))
    t.strictSame(strategyOf(half, false, 1), rolling(1), 'half of one pod is none')
    t.strictSame(strategyOf({ type: 'Recreate' }), { type: 'Recreate' })
    t.end()
  },
)

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

void t.test('a StatefulSet is left whose partition holds back a change', (t) => {
  const reasonsFor = (kind: string, partition: number, updateRevision: string) => {
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { partition } }
    const template = { template: { spec: withPorts({ containerPort: 80 }) }, updateStrategy }
    const workloadTemplate = { statefulSetTemplate: { spec: template } }
    const spec = kind === 'StatefulSet' ? template : { workload: { workloadTemplate } }
    const status = { currentRevision: 'old', updateRevision }
    return stuckFor({ kind, object: { apiVersion: 'apps/v1', kind, spec, status } })
  }
  t.match(reasonsFor('StatefulSet', 1, 'new'), [/finish or withdraw its rollout first/])
  t.strictSame(reasonsFor('StatefulSet', 1, 'old'), [], 'nothing is held back')
  t.strictSame(reasonsFor('StatefulSet', 0, 'new'), [], 'its own rollout goes on anyway')
  t.match(reasonsFor('YurtAppSet', 1, 'old'), [/finish or withdraw its rollout first/])
  t.strictSame(reasonsFor('YurtAppSet', 0, 'old'), [])
  t.end()
})

void t.test('a pod that is created again is as its owner wrote it', (t) => {
  const token = { name: 'kube-api-access-x2x4z' }
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'a',
      namespace: 'shop',
      uid: 'u',
      resourceVersion: '7',
      labels: { app: 'a' },
    },
    spec: {
      nodeName: 'edge-1',
      priority: 0,
      containers: [{ name: 'main', image: 'i', volumeMounts: [token, { name: 'data' }] }],
      volumes: [{ name: 'data' }, token],
    },
    status: { phase: 'Running' },
  }
  t.strictSame(recreated(pod, options), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a', namespace: 'shop', labels: { app: 'a' } },
    spec: {
      containers: [{ name: 'main', image: 'i', volumeMounts: [{ name: 'data' }] }],
      volumes: [{ name: 'data' }],
      hostNetwork: true,
    },
  })
  t.end()
})

void t.test('a Job that is created again has the labels of its pods from its controller', (t) => {
  const labels = { 'batch.kubernetes.io/controller-uid': 'u', 'job-name': 'a', app: 'a' }
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'a', namespace: 'shop' },
    spec: {
      selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': 'u' } },
      parallelism: 2,
      template: { metadata: { labels }, spec: withPorts({ containerPort: 80 }) },
    },
  }
  const { spec } = recreated(job, options) as { spec: JsonObject }
  t.strictSame(Object.keys(spec), ['parallelism', 'template'])
  t.strictSame(valueAt(spec, 'template', 'metadata'), { labels: { app: 'a' } })
  t.equal(valueAt(spec, 'template', 'spec', 'hostNetwork'), true)
  t.end()
})
