import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { hubReportAnnotation } from '../../src/api/kube/hub-report.ts'
import { ownVersion } from '../../src/base/own-version.ts'
import type { ApiClient } from '../kit/cluster/api-client.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { startHubProcess } from '../kit/cluster/hub-process.ts'
import {
  noControlPlane,
  nodeSubject,
  startControlPlane,
  type ControlPlane,
} from '../kit/control-plane.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { noKubelet, startKubelet } from '../kit/kubelet.ts'
import type { Said } from '../kit/terminal.ts'
import { until } from '../kit/until.ts'
import { busyboxPod } from './pod.ts'
import { nodeReady, podRunning } from './seen.ts'

t.setTimeout(300_000)

const found = findBinaries(['kubectl'])
const skip = noControlPlane() ?? ('missing' in found ? found.missing : false)
const kubectl = 'missing' in found ? '' : found.paths.kubectl

const operator = { commonName: 'operator', organizations: ['operators'] }

/** What docs/monitoring.md has for who uses the plugin. */
async function letOperator(admin: ApiClient): Promise<void> {
  const rules = [
    { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['get', 'list'] },
    { apiGroups: [''], resources: ['pods/exec'], verbs: ['get', 'create'] },
  ]
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const role = await admin.post(`${rbac}/clusterroles`, { metadata: { name: 'fleet' }, rules })
  t.equal(role.status, 201)
  const binding = await admin.post(`${rbac}/clusterrolebindings`, {
    metadata: { name: 'fleet' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'fleet' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'operator' }],
  })
  t.equal(binding.status, 201)
}

/** kubectl with the plugin in its PATH, as the operator. */
function withPlugin(plane: ControlPlane): (...argv: readonly string[]) => Promise<Said> {
  const bin = plane.workspace.file('bin')
  mkdirSync(bin)
  const script = `#!/bin/sh\nexec ${process.execPath} ${nodehubProgram} kubectl "$@"\n`
  writeFileSync(`${bin}/kubectl-nodehub`, script, { mode: 0o755 })
  symlinkSync(kubectl, `${bin}/kubectl`)
  const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` }
  const kubeconfig = plane.kubeconfig(operator)
  return async (...argv) => {
    const { promise, resolve } = Promise.withResolvers<Said>()
    const options = { env: { ...env, KUBECONFIG: kubeconfig } }
    execFile(`${bin}/kubectl`, ['nodehub', ...argv], options, (error, out, err) =>
      resolve({ code: Number(error?.code ?? 0), out, err }),
    )
    return await promise
  }
}

const minutesAgo = (minutes: number): string =>
  new Date(Date.now() - minutes * 60_000).toISOString().replace(/\.\d+Z$/, 'Z')

/** A node that its hub has reported on: of ten one is offline, and one would not come back. */
async function addNode(admin: ApiClient, at: number): Promise<void> {
  const [isOffline, isUnkept] = [at % 10 === 3, at % 10 === 7]
  const report = { version: '0.2.9', onlineSince: minutesAgo(90), failing: [] }
  const { status, body } = await admin.post('/api/v1/nodes', {
    metadata: {
      name: `edge-${String(at).padStart(3, '0')}`,
      labels: { pool: at % 2 === 0 ? 'even' : 'odd' },
      annotations: { [hubReportAnnotation]: JSON.stringify(report) },
    },
    status: {
      conditions: [
        {
          type: 'Ready',
          status: isOffline ? 'Unknown' : 'True',
          lastHeartbeatTime: minutesAgo(30),
          lastTransitionTime: minutesAgo(30),
        },
        {
          type: 'OfflineReady',
          status: isUnkept ? 'False' : 'True',
          reason: isUnkept ? 'PodsNotKept' : 'EverythingKept',
          message: isUnkept ? '1 of 4 pods would not come back without a link: shop/web' : '',
          lastHeartbeatTime: minutesAgo(isOffline ? 31 : 2),
          lastTransitionTime: minutesAgo(60),
        },
      ],
    },
  })
  if (status !== 201) throw new Error(body.toString())
}

void t.test(
  'kubectl nodehub shows a fleet of 200 nodes, one of them with a hub that reports',
  { skip },
  async (t) => {
    const plane = await startControlPlane(t)
    await letOperator(plane.admin)
    const nodehub = withPlugin(plane)
    for (let from = 1; from < 200; from += 20)
      await Promise.all(
        Array.from({ length: Math.min(20, 200 - from) }, (_, at) =>
          addNode(plane.admin, from + at),
        ),
      )
    await plane.admin.post('/api/v1/nodes', { metadata: { name: 'edge-000' } })
    await startHubProcess(plane.workspace, {
      servers: [plane.url],
      kubeconfig: plane.kubeconfig(nodeSubject('edge-000')),
      nodeName: 'edge-000',
      flags: ['--offline-ready-condition', '--boot-refresh-interval=5s'],
    })
    await until('the report of the hub', async () => {
      const { out } = await nodehub('status', 'edge-000')
      return out.includes(`Version:        ${ownVersion()}\n`)
    })

    const { code, out, err } = await nodehub('fleet')
    t.strictSame([code, err], [1, ''])
    const [head = '', ...lines] = out.split('\n')
    const [rows, summary] = [lines.slice(0, 200), lines.slice(200)]
    t.match(head, /^NAME +ONLINE +AGE +VERSION +OFFLINE-READY +FAILING$/)
    t.ok(rows.slice(0, 20).every((row) => /^edge-\d\d3 +No +30m +0\.2\.9 +True +-$/.test(row)))
    const unkept = 'boot: 1 of 4 pods would not come back without a link: shop/web'
    t.equal(
      rows[20],
      `edge-000  <none>  <none>  ${ownVersion()}    False          boot: ${notKept}`,
    )
    t.ok(
      rows.slice(21, 41).every((row) => /^edge-\d\d7 +Yes +90m/.test(row) && row.endsWith(unkept)),
    )
    t.ok(rows.slice(41).every((row) => /^edge-\d{3} +Yes +90m +0\.2\.9 +True +-$/.test(row)))
    t.strictSame(summary, ['', '200 nodes: 20 offline, 21 would not come back without a link', ''])

    const odd = await nodehub('fleet', '-l', 'pool=odd', '--no-headers')
    t.equal(odd.out.split('\n').length, 101)
    t.match((await nodehub('status')).out, /\n0\.2\.9 +199 +179 +179 +40\n/)
  },
)

const notKept =
  'the node would not come back without a link: nodes, pods, services, csidrivers.storage.k8s.io, runtimeclasses.node.k8s.io and 1 more'

void t.test(
  'kubectl nodehub why reaches the hub of a node through the API server and the kubelet',
  { skip: skip || (noKubelet() ?? false) },
  async (t) => {
    const nodeName = 'edge-1'
    const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
    await letOperator(plane.admin)
    const nodehub = withPlugin(plane)
    await startKubelet(t, {
      nodeName,
      kubeconfig: plane.kubeconfig(nodeSubject(nodeName)),
      clientCa: plane.pki.ca.certificate,
    })
    await nodeReady(plane.admin, nodeName)
    const programs = plane.workspace.file('programs')
    mkdirSync(programs)
    writeFileSync(`${programs}/node`, inHubsPlace, { mode: 0o755 })
    const pod = busyboxPod('hub') as { metadata: object; spec: { containers: readonly object[] } }
    const mount = { name: 'programs', mountPath: '/usr/local/bin', readOnly: true }
    const [container] = pod.spec.containers
    await plane.admin.post('/api/v1/namespaces/default/pods', {
      ...pod,
      metadata: {
        name: 'hub',
        labels: { 'app.kubernetes.io/name': 'nodehub', 'app.kubernetes.io/component': 'hub' },
      },
      spec: {
        ...pod.spec,
        containers: [{ ...container, volumeMounts: [mount] }],
        volumes: [{ name: 'programs', hostPath: { path: programs } }],
      },
    })
    await podRunning(plane.admin, 'hub')
    const { code, out, err } = await nodehub('why', nodeName, 'get', 'configmaps/web', '-n', 'shop')
    t.strictSame([code, err], [0, ''])
    t.match(out, / get .* \/api\/v1\/namespaces\/shop\/configmaps\/web .* 503 .* not recorded\n/)
  },
)

/** Answers as `nodehub inspect requests` does. */
const inHubsPlace = `#!/bin/sh
case "$*" in
*"inspect requests --verb=get --resource=configmaps --namespace=shop --name=web"*)
  echo '{"items":[{"at":"2026-11-28T12:00:00.000Z","component":"kubelet","caller":"node","verb":"get","path":"/api/v1/namespaces/shop/configmaps/web","code":503,"source":"hub","reason":"not recorded","ms":1,"bytes":200}]}' ;;
*) echo '{}' ;;
esac
`
