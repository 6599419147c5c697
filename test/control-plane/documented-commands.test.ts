/** Runs the commands that the pages have for a cluster, as they are shown, with an API server. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import {
  administrator,
  type ControlPlane,
  noControlPlane,
  startControlPlane,
} from '../kit/control-plane.ts'
import { freePort } from '../kit/free-port.ts'
import { linesWithWays } from '../docs/shell-lines.ts'
import { busyboxPod } from './pod.ts'

t.setTimeout(400_000)

const programs = findBinaries(['bash', 'kubectl'])
const skip = noControlPlane() ?? ('missing' in programs ? programs.missing : false)

/** Reports that find something end with 1. */
const findings = /^nodehub cluster (?:check|exit-plan)/

interface Shell {
  /** Runs a line to its end, or until it has printed this. */
  run(line: string, enough?: RegExp): Promise<{ code: number; out: string }>
}

/** The shell of an administrator in a checkout, with kubectl and `nodehub` on its PATH. */
function shellOf(t: Test, plane: ControlPlane, kubectl: string): Shell {
  const folder = plane.workspace.file('reader')
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  symlinkSync(kubectl, join(bin, 'kubectl'))
  symlinkSync(join(process.cwd(), 'packaging'), join(folder, 'packaging'))
  const [node, args] = plainNode(join(process.cwd(), 'src', 'main.ts'))
  writeFileSync(join(bin, 'nodehub'), `#!/bin/sh\nexec ${node} ${args.join(' ')} "$@"\n`, {
    mode: 0o755,
  })
  writeFileSync(join(folder, 'ca.crt'), 'the authority of API servers\n')
  const kubeconfig = plane.kubeconfig(administrator)
  return {
    async run(line, enough) {
      const here = line.replaceAll('/etc/kubernetes/admin.conf', kubeconfig)
      const child = spawn('bash', ['-o', 'pipefail', '-c', `exec 2>&1\n${here}`], {
        cwd: folder,
        detached: true,
        stdio: ['ignore', 'pipe', 'inherit'],
        env: {
          PATH: `${bin}:${process.env['PATH']}`,
          HOME: folder,
          KUBECONFIG: kubeconfig,
        },
      })
      const stop = (): void => {
        if (child.exitCode === null && child.signalCode === null)
          process.kill(-child.pid!, 'SIGTERM')
      }
      t.teardown(stop)
      let out = ''
      child.stdout.on('data', (chunk: Buffer) => {
        out += chunk.toString()
        if (enough?.test(out)) stop()
      })
      const [code] = (await once(child, 'close')) as [number | null]
      return { code: code ?? -1, out }
    },
  }
}

void t.test('commands on the pages run at an API server', { skip, timeout: 400_000 }, async (t) => {
  if ('missing' in programs) return
  const plane = await startControlPlane(t)
  const shell = shellOf(t, plane, programs.paths.kubectl)
  const { admin } = plane
  await admin.post('/api/v1/nodes', { metadata: { name: 'edge-1' } })
  // A controller makes it elsewhere.
  await admin.post('/api/v1/namespaces/default/serviceaccounts', {
    metadata: { name: 'default' },
  })
  await admin.post('/api/v1/namespaces/default/pods', busyboxPod('shop-2', { nodeName: 'edge-1' }))
  const lines = linesWithWays.filter(
    ({ way }) => way === 'API server' || (typeof way === 'object' && 'lastsUntil' in way),
  )
  // The definition of NodePools first, and nothing that removes before all else has run.
  const order = ({ line }: { line: string }): number =>
    /delete|give-back/.test(line) ? 2 : line.includes('--part cluster --image') ? 0 : 1
  for (const { line, way } of lines.toSorted((a, b) => order(a) - order(b))) {
    const enough = typeof way === 'object' && 'lastsUntil' in way ? way.lastsUntil : undefined
    // Other programs of this machine may have its ports.
    const ports = enough ? ` --webhook-port=${await freePort()} --ops-port=${await freePort()}` : ''
    const { code, out } = await shell.run(`${line}${ports}`, enough)
    if (enough) t.match(out, enough, line)
    else t.ok(code === 0 || (code === 1 && findings.test(line)), line, { code, out })
  }
})
