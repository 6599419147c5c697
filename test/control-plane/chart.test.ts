import t from 'tap'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { administrator, noControlPlane, startControlPlane } from '../kit/control-plane.ts'

const exec = promisify(execFile)
const programs = findBinaries(['helm', 'kubectl'])
const skip = noControlPlane() ?? ('missing' in programs ? programs.missing : false)

void t.test(
  'a real API server takes the base and the chart, an upgrade of it, and keeps NodePools after its removal',
  { skip, timeout: 300_000 },
  async (t) => {
    if ('missing' in programs) return
    const { helm, kubectl } = programs.paths
    const plane = await startControlPlane(t)
    const kubeconfig = plane.kubeconfig(administrator)
    const env = {
      PATH: process.env['PATH'],
      HOME: plane.workspace.file('home'),
      KUBECONFIG: kubeconfig,
    }
    const run = async (program: string, ...args: readonly string[]): Promise<string> =>
      (await exec(program, args, { env })).stdout
    await run(kubectl, 'create', 'namespace', 'nodehub-system')
    const base = 'packaging/cluster/kustomize'
    t.match(await run(kubectl, 'apply', '--dry-run=server', '-k', base), 'created (server dry run)')

    const nodes = `${base}/nodes`
    t.match(await run(kubectl, 'apply', '--dry-run=server', '-k', nodes), 'nodehub-install created')

    const release = ['nodehub', 'packaging/cluster/chart', '--namespace', 'nodehub-system']
    await run(helm, 'install', ...release)
    const args = [
      '-n',
      'nodehub-system',
      'get',
      'deployment,service,pdb,networkpolicy',
      '-o',
      'name',
    ]
    t.match(await run(kubectl, ...args), /deployment.apps\/nodehub-cluster/)
    await run(helm, 'upgrade', ...release, '--set', 'podHostNetwork=true')
    const webhooks = ['get', 'mutatingwebhookconfiguration', 'nodehub-cluster', '-o', 'yaml']
    t.match(await run(kubectl, ...webhooks), 'pods')
    await run(helm, 'uninstall', 'nodehub', '--namespace', 'nodehub-system')
    t.equal(await run(kubectl, ...args), '')
    t.match(await run(kubectl, 'get', 'crd', '-o', 'name'), 'nodepools.apps.openyurt.io')
  },
)
