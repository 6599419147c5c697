import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import t from 'tap'
import type { ApiClient } from '../kit/cluster/api-client.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { noControlPlane, startControlPlane, type ControlPlane } from '../kit/control-plane.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { noKubelet } from '../kit/kubelet.ts'
import type { Said } from '../kit/terminal.ts'
import { busyboxPod } from './pod.ts'
import { nodeReady, podRunning } from './seen.ts'
import { nodeName, startNodeKubelet } from './node.ts'

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

void t.test(
  'kubectl nodehub why reaches the hub of a node through the API server and the kubelet',
  { skip: skip || (noKubelet() ?? false) },
  async (t) => {
    const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
    await letOperator(plane.admin)
    const nodehub = withPlugin(plane)
    await startNodeKubelet(t, plane)
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
