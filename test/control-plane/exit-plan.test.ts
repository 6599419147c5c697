import t, { type Test } from 'tap'
import { pool } from '../../bench/host-network/arms.ts'
import { type RealNode, startNode } from '../../bench/host-network/node.ts'
import { startRealPlane } from '../../bench/host-network/plane.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../src/api/kube/json-at.ts'
import { nodePoolLabel } from '../../src/api/kube/node-pool.ts'
import { every } from '../../src/base/clock.ts'
import { exitPlan } from '../../src/cli/exit-plan.ts'
import { connect } from '../../src/cluster/api/connect.ts'
import type { ExitPlanConfig } from '../../src/config/cluster-config.ts'
import { noNodeNetwork } from '../kit/cluster/node-network.ts'
import { busyboxImage } from '../kit/cluster/oci-image.ts'
import { administrator, type ControlPlane, noControlPlane } from '../kit/control-plane.ts'
import { noKubelet } from '../kit/kubelet.ts'
import { until } from '../kit/until.ts'
import { nodeReady } from './seen.ts'

t.setTimeout(600_000)

const skip = noControlPlane() ?? noKubelet() ?? noNodeNetwork() ?? false

const apps = '/apis/apps/v1/namespaces/default'
const pods = '/api/v1/namespaces/default/pods'

/** A program that answers on a port, which it declares or which only its probe names. */
const podOf = (app: string, port: number, declares: boolean): JsonObject => ({
  metadata: { labels: { app } },
  spec: {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    tolerations: [{ operator: 'Exists' }],
    nodeSelector: { [nodePoolLabel]: pool },
    containers: [
      {
        name: 'main',
        image: busyboxImage,
        imagePullPolicy: 'Never',
        command: ['sh', '-c', `cd /tmp && echo ${app} > index.html && exec httpd -f -p ${port}`],
        ...(declares && {
          ports: ['TCP', 'UDP'].map((protocol) => ({ containerPort: port, protocol })),
        }),
        readinessProbe: { httpGet: { path: '/index.html', port }, periodSeconds: 1 },
      },
    ],
  },
})

const workload = (
  kind: string,
  name: string,
  { port, declares = true, spec }: { port: number; declares?: boolean; spec: JsonObject },
): JsonObject => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name },
  spec: {
    selector: { matchLabels: { app: name } },
    template: podOf(name, port, declares),
    ...spec,
  },
})

const workloads: readonly (readonly [resource: string, object: JsonObject])[] = [
  [
    'deployments',
    workload('Deployment', 'web', {
      port: 8080,
      spec: { replicas: 2, strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 2 } } },
    }),
  ],
  ['daemonsets', workload('DaemonSet', 'agent', { port: 9090, declares: false, spec: {} })],
  [
    'statefulsets',
    workload('StatefulSet', 'store', { port: 7070, spec: { replicas: 2, serviceName: 'store' } }),
  ],
]

/** Its pods are replaced when somebody deletes them. */
const byHand = workload('StatefulSet', 'manual', {
  port: 6060,
  spec: { replicas: 2, serviceName: 'manual', updateStrategy: { type: 'OnDelete' } },
})

/** It covers the Deployment, and allows that none of its pods is missing. */
const budget: JsonObject = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'web' },
  spec: { minAvailable: 2, selector: { matchLabels: { app: 'web' } } },
}

void t.test(
  'a cluster leaves the legacy filter: pods of every owner serve on without it',
  { skip, timeout: 600_000 },
  async (t) => {
    const { plane } = await startRealPlane(t)
    const kind = { hostNetworkNodes: true, podNetwork: false, hub: 'nodehub' } as const
    const names = ['exit-0', 'exit-1']
    const nodes = await Promise.all(names.map((name) => startNode(t, plane, { name, kind })))
    for (const { name, hub } of nodes) {
      await nodeReady(plane.admin, name)
      await hub.propagate('on')
    }
    for (const [resource, object] of workloads)
      t.equal((await plane.admin.post(`${apps}/${resource}`, object)).status, 201)
    t.equal((await plane.admin.post(`${apps}/statefulsets`, byHand)).status, 201)
    const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
    t.equal((await plane.admin.post(budgets, budget)).status, 201)
    const before = await allReady(plane, (pod) => valueAt(pod, 'spec', 'hostNetwork') !== true)
    t.ok(
      before.every((pod) => textAt(pod, 'status', 'podIP') === textAt(pod, 'status', 'hostIP')),
      'the filter has them on the network of their host',
    )

    for (const [resource, { metadata }] of workloads) {
      const name = textAt(metadata, 'name')
      const specNow = async () =>
        valueAt((await plane.admin.get(`${apps}/${resource}/${name}`)).json() as never, 'spec')
      const spec = await specNow()
      const { code, out } = await run(t, plane, {
        apply: true,
        only: [`default/${name}`],
        settleMs: 0,
      })
      t.equal(code, 1)
      t.match(out, /patched\n {2}not settled within 0 s\n {2}taken back/)
      t.strictSame(await specNow(), spec, `${name}: as it was, with the API server's defaults`)
    }
    await allReady(plane, (pod) => valueAt(pod, 'spec', 'hostNetwork') !== true)

    const service = watchService(t, nodes)
    const { code, out } = await run(t, plane, { apply: true })
    t.comment(out)
    t.equal(code, 1, 'one is left to be replaced by hand')
    t.match(out, /budget web allows no disruption now: a rollout does not ask it/)
    t.match(out, /its pods are replaced as they are deleted \(OnDelete\)/)
    const web = (await plane.admin.get(`${apps}/deployments/web`)).json() as never
    t.equal(valueAt(web, 'spec', 'strategy', 'rollingUpdate', 'maxUnavailable'), 1)
    for (const name of ['web', 'agent', 'store'])
      t.match(out, new RegExp(`default/${name}:\n {2}patched\n {2}settled in `))
    await replaceByHand(plane, out)
    const after = await allReady(plane, (pod) => valueAt(pod, 'spec', 'hostNetwork') === true)
    const gap = service.longest()
    t.comment(`web: no answer from any node for ${gap / 2} s at most, by two looks a second`)
    t.ok(gap < 10, 'one of its pods answers while the other is replaced')

    for (const { hub } of nodes) {
      await hub.propagate('off')
      await hub.daemon.restart()
    }
    const uids = (list: readonly JsonObject[]): string[] =>
      list.map((pod) => textAt(pod, 'metadata', 'uid')).toSorted()
    await plane.admin.send('DELETE', `${pods}/${nameOf(after, 'web')}`)
    await until('the pod to be gone', async () => {
      const { status } = await plane.admin.get(`${pods}/${nameOf(after, 'web')}`)
      return status === 404
    })
    const off = await allReady(plane, () => true)
    t.equal(
      uids(off).filter((uid) => uids(after).includes(uid)).length,
      7,
      'those that run go on, and a new pod needs no filter',
    )
    for (const { name, network } of nodes)
      for (const [port, app] of [
        [8080, 'web'],
        [9090, 'agent'],
        [7070, 'store'],
        [6060, 'manual'],
      ] as const)
        t.equal((await network.fetch(`http://127.0.0.1:${port}/index.html`))?.trim(), app, name)
    t.equal((await run(t, plane, {})).code, 0, 'no pod is left to plan for')
  },
)

const nameOf = (list: readonly JsonObject[], app: string): string =>
  list
    .filter((pod) => textAt(pod, 'metadata', 'labels', 'app') === app)
    .map((pod) => textAt(pod, 'metadata', 'name'))[0] ?? ''

/** As the plan says of the StatefulSet that it leaves: its patch, then pod after pod. */
async function replaceByHand({ admin }: ControlPlane, plan: string): Promise<void> {
  const [, patch] = /statefulsets[.]apps\/manual --type=strategic -p '(.*)'/.exec(plan) ?? []
  const { status } = await admin.send(
    'PATCH',
    `${apps}/statefulsets/manual`,
    patch ?? '',
    'application/strategic-merge-patch+json',
  )
  if (status !== 200) throw new Error(`the change of the template was answered ${status}`)
  for (const name of ['manual-0', 'manual-1']) {
    await admin.send('DELETE', `${pods}/${name}`)
    await until(
      `${name} to be ready on the host's network`,
      async () => {
        const pod = JSON.parse((await admin.get(`${pods}/${name}`)).body.toString()) as JsonObject
        return (
          valueAt(pod, 'spec', 'hostNetwork') === true &&
          valueAt(pod, 'metadata', 'deletionTimestamp') === undefined &&
          isReady(pod)
        )
      },
      { seconds: 120 },
    )
  }
}

const isReady = (pod: JsonObject): boolean =>
  listAt(pod, 'status', 'conditions').some(
    (each) => textAt(each, 'type') === 'Ready' && textAt(each, 'status') === 'True',
  )

/** Two pods of each owner, all of them ready and as they should be. */
function allReady(
  { admin }: ControlPlane,
  isRight: (pod: JsonObject) => boolean,
): Promise<readonly JsonObject[]> {
  let last: readonly string[] = []
  return until(
    'eight pods to be ready',
    async () => {
      const body = JSON.parse((await admin.get(pods)).body.toString()) as JsonObject
      const all = listAt(body, 'items') as readonly JsonObject[]
      last = all.map((pod) => JSON.stringify(pod['status']).slice(0, 600))
      const ready = all.filter((pod) => isRight(pod) && isReady(pod))
      return all.length === 8 && ready.length === 8 && ready
    },
    { seconds: 180, describe: () => last },
  )
}

/** Counts looks in a row in which no node answers for the Deployment. */
function watchService(t: Test, nodes: readonly RealNode[]): { longest: () => number } {
  let [row, longest] = [0, 0]
  const looking = every(500, () => {
    void Promise.all(
      nodes.map(({ network }) => network.fetch('http://127.0.0.1:8080/index.html')),
    ).then((answers) => {
      row = answers.some((answer) => answer?.trim() === 'web') ? 0 : row + 1
      longest = Math.max(longest, row)
    })
  })
  t.teardown(() => looking[Symbol.dispose]())
  return { longest: () => longest }
}

async function run(
  t: Test,
  plane: ControlPlane,
  rest: Partial<ExitPlanConfig>,
): Promise<{ readonly code: number; readonly out: string }> {
  const config: ExitPlanConfig = {
    access: { kind: 'kubeconfig', file: plane.kubeconfig(administrator) },
    namespace: 'kube-system',
    qps: 50,
    burst: 100,
    apply: false,
    mixed: 'ask',
    keepOff: [],
    only: [],
    includeManaged: false,
    recreate: false,
    settleMs: 180_000,
    output: 'table',
    ...rest,
  }
  await using connected = await connect(config)
  let out = ''
  const terminal = {
    out: (text: string) => void (out += text),
    err: (text: string) => t.fail(text),
  }
  return { code: await exitPlan(connected.api, config, terminal), out }
}
