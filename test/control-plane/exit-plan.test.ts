import t, { type Test } from 'tap'
import { pool } from '../../bench/host-network/arms.ts'
import { type RealNode, startNode } from '../../bench/host-network/node.ts'
import { startRealPlane } from '../../bench/host-network/plane.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt, withAt } from '../../src/api/kube/json-at.ts'
import { hostNetworkLabel } from '../../src/api/kube/node-pool.ts'
import { every } from '../../src/base/clock.ts'
import { exitPlan } from '../../src/cli/exit-plan.ts'
import { connect } from '../../src/cluster/api/connect.ts'
import type { ExitPlanConfig } from '../../src/config/cluster-config.ts'
import { noNodeNetwork } from '../kit/cluster/node-network.ts'
import { busyboxImage } from '../kit/cluster/oci-image.ts'
import { administrator, type ControlPlane, noControlPlane } from '../kit/control-plane.ts'
import { noKubelet } from '../kit/kubelet.ts'
import { until } from '../kit/until.ts'
import { makePool } from './host-network-pool.ts'
import { nodeReady } from './seen.ts'
import { startYurtAppSets } from './yurt-app-sets.ts'

t.setTimeout(600_000)

const skip = noControlPlane() ?? noKubelet() ?? noNodeNetwork() ?? false

const apps = '/apis/apps/v1/namespaces/default'
const appSets = '/apis/apps.openyurt.io/v1beta1/namespaces/default/yurtappsets'
const pods = '/api/v1/namespaces/default/pods'

/** A program that answers on a port, which it declares or which only its probe names. */
const podOf = (app: string, port: number, declares: boolean): JsonObject => ({
  metadata: { labels: { app } },
  spec: {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    tolerations: [{ operator: 'Exists' }],
    nodeSelector: { [hostNetworkLabel]: 'true' },
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

const otherPool = 'other'

/** One pod in each pool, with the strategy that a Deployment has by default. */
const sites: JsonObject = {
  apiVersion: 'apps.openyurt.io/v1beta1',
  kind: 'YurtAppSet',
  metadata: { name: 'sites' },
  spec: {
    pools: [pool, otherPool],
    workload: {
      workloadTemplate: {
        deploymentTemplate: {
          spec: {
            replicas: 1,
            selector: { matchLabels: { app: 'sites' } },
            template: podOf('sites', 5050, true),
          },
        },
      },
    },
  },
}

const workloads: readonly (readonly [collection: string, object: JsonObject])[] = [
  [
    `${apps}/deployments`,
    workload('Deployment', 'web', {
      port: 8080,
      spec: { replicas: 2, strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 2 } } },
    }),
  ],
  [`${apps}/daemonsets`, workload('DaemonSet', 'agent', { port: 9090, declares: false, spec: {} })],
  [
    `${apps}/statefulsets`,
    workload('StatefulSet', 'store', { port: 7070, spec: { replicas: 2, serviceName: 'store' } }),
  ],
  [appSets, sites],
]

/** Its pods are replaced when somebody deletes them. */
const byHand = workload('StatefulSet', 'manual', {
  port: 6060,
  spec: { replicas: 2, serviceName: 'manual', updateStrategy: { type: 'OnDelete' } },
})

/** Its pods get ready with the revision alone that each of them has had first. */
function loyal(folder: string): JsonObject {
  const object = workload('StatefulSet', 'loyal', {
    port: 4040,
    spec: { replicas: 2, serviceName: 'loyal' },
  })
  const spec = objectAt(object, 'spec', 'template', 'spec')
  const [container] = listAt(spec, 'containers')
  const field = (name: string, fieldPath: string) => ({
    name,
    valueFrom: { fieldRef: { fieldPath } },
  })
  const first = '/first/$POD'
  const serve = `[ -e ${first} ] || echo $REVISION > ${first}; exec httpd -f -p 4040`
  const compare = `[ "$(cat ${first})" = $REVISION ]`
  const changed = {
    ...objectAt({ container: container ?? {} }, 'container'),
    command: ['sh', '-c', serve],
    env: [
      field('POD', 'metadata.name'),
      field('REVISION', "metadata.labels['controller-revision-hash']"),
    ],
    volumeMounts: [{ name: 'first', mountPath: '/first' }],
    readinessProbe: { exec: { command: ['sh', '-c', compare] }, periodSeconds: 1 },
  }
  const volumes = [{ name: 'first', hostPath: { path: folder, type: 'DirectoryOrCreate' } }]
  const template = { ...spec, containers: [changed], volumes }
  return withAt(object, ['spec', 'template', 'spec'], template)
}

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
    await Promise.all([makePool(plane, otherPool), startYurtAppSets(t, plane)])
    const kind = { hostNetworkNodes: true, podNetwork: false, hub: 'nodehub' } as const
    const nodes = await Promise.all(
      [pool, otherPool].map((its, at) =>
        startNode(t, plane, { name: `exit-${at}`, kind, pool: its }),
      ),
    )
    for (const { name, hub } of nodes) {
      await nodeReady(plane.admin, name)
      await hub.propagate('on')
    }
    const statefulSets = `${apps}/statefulsets`
    for (const [collection, object] of [
      ...workloads,
      [statefulSets, byHand],
      [statefulSets, loyal(plane.workspace.file('first'))],
      ['/apis/policy/v1/namespaces/default/poddisruptionbudgets', budget],
    ] as const)
      t.equal((await plane.admin.post(collection, object)).status, 201)
    const before = await allReady(plane, 12, isPropagated)
    t.ok(
      before.every((pod) => textAt(pod, 'status', 'podIP') === textAt(pod, 'status', 'hostIP')),
      'the filter has them on the network of their host',
    )

    for (const [collection, { metadata }] of workloads) {
      const name = textAt(metadata, 'name')
      const specNow = async () =>
        valueAt((await plane.admin.get(`${collection}/${name}`)).json() as never, 'spec')
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
    await allReady(plane, 12, isPropagated)

    const services = ['web', 'sites'].map((name) => watchService(t, nodes, name))
    const only = [...workloads.map(([, { metadata }]) => textAt(metadata, 'name')), 'manual']
    const leaving = async () => {
      const ended = await run(t, plane, {
        apply: true,
        only: only.map((name) => `default/${name}`),
      })
      await replaceByHand(plane, ended.out)
      return ended
    }
    const [{ code, out }] = await Promise.all([leaving(), staysBroken(t, plane)])
    t.comment(out)
    t.equal(code, 1, 'one is left to be replaced by hand')
    t.match(out, /budget web allows no disruption now: a rollout does not ask it/)
    t.match(out, /its pods are replaced as they are deleted \(OnDelete\)/)
    const web = (await plane.admin.get(`${apps}/deployments/web`)).json() as never
    t.equal(valueAt(web, 'spec', 'strategy', 'rollingUpdate', 'maxUnavailable'), 1)
    for (const name of ['web', 'agent', 'store'])
      t.match(out, new RegExp(`default/${name}:\n {2}patched\n {2}settled in `))
    t.match(
      out,
      /YurtAppSet default\/sites:\n {2}patched\n {2}settled in \d+ s: (none available for \d+ s|\d available at least), of 2/,
    )
    t.notMatch(out, /Deployment default\/sites/, 'what would be written over is not patched')
    t.equal((await plane.admin.send('DELETE', `${statefulSets}/loyal`)).status, 200)
    const after = await allReady(plane, 10, isOfHost)
    const [gap = Infinity] = services.map(({ name, longest }) => {
      t.comment(
        `${name}: no answer from any node for ${longest() / 2} s at most, by two looks a second`,
      )
      return longest()
    })
    t.ok(gap < 10, 'one pod of web answers while the other is replaced')

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
    const off = await allReady(plane, 10, () => true)
    t.equal(
      uids(off).filter((uid) => uids(after).includes(uid)).length,
      9,
      'those that run go on, and a new pod needs no filter',
    )
    for (const { name, network } of nodes)
      for (const [app, port] of Object.entries({
        ...ports,
        agent: 9090,
        store: 7070,
        manual: 6060,
      }))
        t.equal((await network.fetch(`http://127.0.0.1:${port}/index.html`))?.trim(), app, name)
    t.equal((await run(t, plane, {})).code, 0, 'no pod is left to plan for')
  },
)

const isOfHost = (pod: JsonObject): boolean => valueAt(pod, 'spec', 'hostNetwork') === true

/** As the filter is on. */
const isPropagated = (pod: JsonObject): boolean => !isOfHost(pod)

/** The one whose pods are not ready with another revision: it is taken back, and serves again. */
async function staysBroken(t: Test, plane: ControlPlane): Promise<void> {
  const podNow = async (): Promise<JsonObject> =>
    JSON.parse((await plane.admin.get(`${pods}/loyal-1`)).body.toString()) as JsonObject
  const [{ code, out }, broken] = await Promise.all([
    run(t, plane, { apply: true, only: ['default/loyal'], settleMs: 30_000 }),
    until('a broken pod', async () => {
      const pod = await podNow()
      const [main] = listAt(pod, 'status', 'containerStatuses')
      const runs = Object.keys(objectAt(main, 'state', 'running')).length > 0
      return isOfHost(pod) && runs && !isReady(pod) && pod
    }),
  ])
  t.comment(out)
  t.equal(code, 1)
  t.match(
    out,
    /default\/loyal:\n {2}patched\n {2}not settled within 30 s\n {2}pod loyal-1 deleted: .*\n {2}taken back, and settled/,
  )
  const now = await podNow()
  t.not(textAt(now, 'metadata', 'uid'), textAt(broken, 'metadata', 'uid'))
  t.ok(isReady(now) && isPropagated(now), 'it serves as before')
}

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
  count: number,
  isRight: (pod: JsonObject) => boolean,
): Promise<readonly JsonObject[]> {
  let last: readonly string[] = []
  return until(
    `${count} pods to be ready`,
    async () => {
      const body = JSON.parse((await admin.get(pods)).body.toString()) as JsonObject
      const all = listAt(body, 'items') as readonly JsonObject[]
      last = all.map((pod) => JSON.stringify(pod['status']).slice(0, 600))
      const ready = all.filter((pod) => isRight(pod) && isReady(pod))
      return all.length === count && ready.length === count && ready
    },
    { seconds: 180, describe: () => last },
  )
}

/** On which the Deployment and the YurtAppSet answer. */
const ports: Readonly<Record<string, number>> = { web: 8080, sites: 5050 }

/** Counts looks in a row in which no node answers for an app. */
function watchService(t: Test, nodes: readonly RealNode[], name: string) {
  let [row, longest] = [0, 0]
  const url = `http://127.0.0.1:${ports[name]}/index.html`
  const looking = every(500, () => {
    void Promise.all(nodes.map(({ network }) => network.fetch(url))).then((answers) => {
      row = answers.some((answer) => answer?.trim() === name) ? 0 : row + 1
      longest = Math.max(longest, row)
    })
  })
  t.teardown(() => looking[Symbol.dispose]())
  return { name, longest: () => longest }
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
