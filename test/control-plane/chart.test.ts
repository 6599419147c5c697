import t from 'tap'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { noKustomizeOfCharts } from '../kit/kustomize.ts'
import { administrator, noControlPlane, startControlPlane } from '../kit/control-plane.ts'

const exec = promisify(execFile)
const programs = findBinaries(['helm', 'kubectl'])
const skip = noControlPlane() ?? ('missing' in programs ? programs.missing : false)

/** A control plane has no definitions of the Prometheus Operator. */
const ofOperator = /^kind: (?:PodMonitor|PrometheusRule)$/m

void t.test(
  'a real API server takes the chart by kustomize and with every value, an upgrade of it, and keeps NodePools after its removal',
  { skip, timeout: 300_000 },
  async (t) => {
    if ('missing' in programs) return
    const { helm, kubectl } = programs.paths
    const plane = await startControlPlane(t)
    const env = {
      PATH: `${dirname(helm)}:${process.env['PATH']}`,
      HOME: plane.workspace.file('home'),
      KUBECONFIG: plane.kubeconfig(administrator),
    }
    const run = async (program: string, ...args: readonly string[]): Promise<string> =>
      (await exec(program, args, { env })).stdout
    const dryRun = async (documents: string): Promise<readonly string[]> => {
      const file = plane.workspace.file('rendered.yaml')
      writeFileSync(file, documents)
      return (await run(kubectl, 'apply', '--dry-run=server', '-f', file)).trim().split('\n')
    }
    await run(kubectl, 'create', 'namespace', 'nodehub-system')
    if (noKustomizeOfCharts() === false) {
      const built = await run(kubectl, 'kustomize', '--enable-helm', 'packaging/cluster')
      t.equal((await dryRun(built)).length, 17)
    }

    const release = ['nodehub', 'packaging/cluster/chart', '--namespace', 'nodehub-system']
    const values = ['--values', 'test/packaging/every-value.yaml', '--kube-version', '1.36.0']
    const rendered = (await run(helm, 'template', ...release, ...values)).split(/^---$/m)
    const known = rendered.filter((each) => !ofOperator.test(each))
    t.equal(rendered.length - known.length, 2)
    const taken = await dryRun(known.join('---\n'))
    t.equal(taken.length, 20)
    t.ok(taken.every((line) => / (?:created|configured) \(server dry run\)$/.test(line)))

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
    const deployed = ['-n', 'nodehub-system', 'get', 'deployment', 'nodehub-cluster', '-o', 'yaml']
    t.match(await run(kubectl, ...deployed), '--pod-host-network')
    await run(helm, 'uninstall', 'nodehub', '--namespace', 'nodehub-system')
    t.equal(await run(kubectl, ...args), '')
    t.match(await run(kubectl, 'get', 'crd', '-o', 'name'), 'nodepools.apps.openyurt.io')
  },
)
