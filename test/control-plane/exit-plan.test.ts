import t, { type Test } from 'tap'
import { exec } from 'node:child_process'
import { promisify } from 'node:util'
import { pool } from '../../bench/host-network/arms.ts'
import { type RealNode, startNode } from '../../bench/host-network/node.ts'
import { startRealPlane } from '../../bench/host-network/plane.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../src/api/kube/json-at.ts'
import { hostNetworkLabel } from '../../src/api/kube/node-pool.ts'
import { every } from '../../src/base/clock.ts'
import { exitPlan } from '../../src/cli/exit-plan.ts'
import { connect } from '../../src/cluster/api/connect.ts'
import type { ExitPlanConfig } from '../../src/config/cluster-config.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { noNodeNetwork } from '../kit/cluster/node-network.ts'
import { busyboxImage } from '../kit/cluster/oci-image.ts'
import { administrator, type ControlPlane, noControlPlane } from '../kit/control-plane.ts'
import { noKubelet } from '../kit/kubelet.ts'
import { until } from '../kit/until.ts'
import { nodeReady } from './seen.ts'

t.setTimeout(600_000)

const programs = findBinaries(['kubectl'])
const skip =
  noControlPlane() ??
  noKubelet() ??
  noNodeNetwork() ??
  ('missing' in programs ? programs.missing : false)

const shell = promisify(exec)

const apps = '/apis/apps/v1/namespaces/default'
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

const workloads: readonly (readonly [collection: string, object: JsonObject])[] = [
  [
    `${apps}/deployments`,
    workload('Deployment', 'web', {
      port: 8080,
      spec: { replicas: 2, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
    }),
  ],
  [`${apps}/daemonsets`, workload('DaemonSet', 'agent', { port: 9090, declares: false, spec: {} })],
  [
    `${apps}/statefulsets`,
    workload('StatefulSet', 'store', { port: 7070, spec: { replicas: 2, serviceName: 'store' } }),
  ],
]

/** Its pods are replaced when somebody deletes them. */
const byHand = workload('StatefulSet', 'manual', {
  port: 6060,
  spec: { replicas: 2, serviceName: 'manual', updateStrategy: { type: 'OnDelete' } },
})

void t.test(
  'a cluster leaves the legacy filter by the printed patches: pods of every owner serve on',
  { skip, timeout: 600_000 },
  async (t) => {
    if ('missing' in programs) return
    const { kubectl } = programs.paths
    const { plane } = await startRealPlane(t)
    const kind = { hostNetworkNodes: true, podNetwork: false, hub: 'nodehub' } as const
    const nodes = await Promise.all(
      [0, 1].map((at) => startNode(t, plane, { name: `exit-${at}`, kind, pool })),
    )
    for (const { name, hub } of nodes) {
      await nodeReady(plane.admin, name)
      await hub.propagate('on')
    }
    const statefulSets = `${apps}/statefulsets`
    for (const [collection, object] of [...workloads, [statefulSets, byHand]] as const)
      t.equal((await plane.admin.post(collection, object)).status, 201)
    const before = await allReady(plane, 8, isPropagated)
    t.ok(
      before.every((pod) => textAt(pod, 'status', 'podIP') === textAt(pod, 'status', 'hostIP')),
      'the filter has them on the network of their host',
    )

    const longest = watchWeb(t, nodes)
    const { code, out } = await run(t, plane)
    t.comment(out)
    t.equal(code, 1, 'pods need the filter')
    t.match(out, /its pods are replaced as they are deleted \(OnDelete\)/)
    const commands = [...out.matchAll(/^ {3}kubectl (patch .*)$/gm)].map(([, line = '']) => line)
    t.equal(commands.length, 4, 'a patch for each owner')
    const patched: string[] = []
    for (const command of commands) {
      await shell(`${kubectl} --kubeconfig=${plane.kubeconfig(administrator)} ${command}`)
      const [, name = ''] = /\/([a-z]+) --type=/.exec(command) ?? []
      if (name === 'manual') await replaceByHand(plane)
      patched.push(name)
      await allReady(plane, 8, (pod) =>
        patched.includes(textAt(pod, 'metadata', 'labels', 'app')) ? isOfHost(pod) : true,
      )
    }
    const web = (await plane.admin.get(`${apps}/deployments/web`)).json() as never
    t.equal(valueAt(web, 'spec', 'strategy', 'rollingUpdate', 'maxUnavailable'), 1)
    const after = await allReady(plane, 8, isOfHost)
    t.ok(longest() < 10, 'one pod of web answers while the other is replaced')
    t.equal((await run(t, plane)).code, 0, 'no pod needs the filter')

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
    const off = await allReady(plane, 8, () => true)
    t.equal(
      uids(off).filter((uid) => uids(after).includes(uid)).length,
      7,
      'those that run go on, and a new pod needs no filter',
    )
    for (const { name, network } of nodes)
      for (const [app, port] of Object.entries(ports))
        t.equal((await network.fetch(`http://127.0.0.1:${port}/index.html`))?.trim(), app, name)
    t.equal((await run(t, plane)).code, 0, 'no pod is left to plan for')
  },
)

const isOfHost = (pod: JsonObject): boolean => valueAt(pod, 'spec', 'hostNetwork') === true

/** As the filter is on. */
const isPropagated = (pod: JsonObject): boolean => !isOfHost(pod)

const nameOf = (list: readonly JsonObject[], app: string): string =>
  list
    .filter((pod) => textAt(pod, 'metadata', 'labels', 'app') === app)
    .map((pod) => textAt(pod, 'metadata', 'name'))[0] ?? ''

/** As the plan says of the StatefulSet: its template is changed, then pod after pod. */
async function replaceByHand({ admin }: ControlPlane): Promise<void> {
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

const ports = { web: 8080, agent: 9090, store: 7070, manual: 6060 }

/** Counts looks in a row, two a second, in which no node answers for the Deployment. */
function watchWeb(t: Test, nodes: readonly RealNode[]): () => number {
  let [row, longest] = [0, 0]
  const url = `http://127.0.0.1:${ports.web}/index.html`
  const looking = every(500, () => {
    void Promise.all(nodes.map(({ network }) => network.fetch(url))).then((answers) => {
      row = answers.some((answer) => answer?.trim() === 'web') ? 0 : row + 1
      longest = Math.max(longest, row)
    })
  })
  t.teardown(() => looking[Symbol.dispose]())
  return () => longest
}

async function run(
  t: Test,
  plane: ControlPlane,
): Promise<{ readonly code: number; readonly out: string }> {
  const config: ExitPlanConfig = {
    access: { kind: 'kubeconfig', file: plane.kubeconfig(administrator) },
    namespace: 'kube-system',
    keepOff: [],
    output: 'table',
  }
  await using connected = await connect(config)
  let out = ''
  const terminal = {
    out: (text: string) => void (out += text),
    err: (text: string) => t.fail(text),
  }
  return { code: await exitPlan(connected.api, config, terminal), out }
}
