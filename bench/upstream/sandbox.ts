import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { Daemon } from '../../test/kit/cluster/daemon.ts'
import { openWorkspace, type Scope } from '../../test/kit/cluster/workspace.ts'
import { kubeconfigOf } from './kubeconfig.ts'
import { nodeName, type Upstream } from './upstream.ts'

/**
 * The API server in memory, in a process of its own. Its figures say what a proxy costs, not what
 * an API server takes.
 */
export async function sandboxUpstream(scope: Scope): Promise<Upstream> {
  const workspace = openWorkspace(scope)
  const said = workspace.file(saidFile)
  const daemon = new Daemon(workspace, 'sandbox', {
    command: process.execPath,
    args: [import.meta.filename, workspace.path],
    ready: () => Promise.resolve(existsSync(said)),
  })
  await daemon.start()
  const facts = JSON.parse(readFileSync(said, 'utf8')) as Facts
  return {
    description: "the project's own API server in memory, in a process of its own",
    ...facts,
    stop: () => daemon.kill(),
  }
}

const saidFile = 'sandbox.json'

type Facts = Pick<Upstream, 'node' | 'admin' | 'kubeconfig' | 'adminKubeconfig'>

/**
 * Starts it and writes down, for who started this process, how it is reached. Files lie in
 * `folder`.
 */
async function serve(folder: string): Promise<void> {
  const sandbox = await startSandbox()
  const write = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  const ca = write('ca.crt', sandbox.caCertificate ?? '')
  const as = async (name: string, commonName: string, group: string): Promise<Upstream['node']> => {
    const { certificate, key } = await sandbox.clientCertificate(commonName, [group])
    return {
      url: sandbox.url,
      ca,
      certificate: write(`${name}.crt`, certificate),
      key: write(`${name}.key`, key),
    }
  }
  const node = await as('node', `system:node:${nodeName}`, 'system:nodes')
  const admin = await as('admin', 'admin', 'system:masters')
  const facts: Facts = {
    node,
    admin,
    kubeconfig: write('node.kubeconfig', kubeconfigOf(node)),
    adminKubeconfig: write('admin.kubeconfig', kubeconfigOf(admin)),
  }
  renameSync(write('facts.json', JSON.stringify(facts)), join(folder, saidFile))
}

if (import.meta.main) await serve(process.argv[2] ?? '.')
