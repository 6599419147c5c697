import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { parse } from 'yaml'
import { every } from '../../src/base/clock.ts'
import { Client } from './client.ts'
import { plainNode } from './cluster/plain-node.ts'
import type { Teardown } from './wire/wire.ts'
import { nodehubProgram } from './hub-programs.ts'

interface StaticPodNodeOptions {
  readonly ports: { readonly proxy: number; readonly secure: number; readonly ops: number }
  readonly nodeName: string
  /** The name of yurthub's manifest. */
  readonly manifest: string
  /** How often the kubelet looks at the manifests; a real one does when they change, or late. */
  readonly everyMs?: number
}

/**
 * A kubelet as far as its static pods show: in a node's root it runs a hub while nodehub.yaml is
 * there, and what answers as yurthub does while yurthub's manifest is. Through the hub it renews
 * the lease of its Node.
 */
export class StaticPodNode {
  readonly #root: string
  readonly #options: StaticPodNodeOptions
  #hub: ChildProcess | undefined
  #yurthub: readonly Server[] = []
  /** Whether the kubelet reaches its API server. */
  renews = true
  /** How often the hub was started. */
  started = 0
  /** Whether the kubelet heeds its manifests. */
  reconciles = true

  constructor(t: Teardown, root: string, options: StaticPodNodeOptions) {
    this.#root = root
    this.#options = options
    const looking = every(options.everyMs ?? 20, () => this.#reconcile())
    const renewing = every(200, () => void this.#renew().catch(() => undefined))
    t.teardown(() => {
      looking[Symbol.dispose]()
      renewing[Symbol.dispose]()
      this.#endYurthub()
      this.#hub?.kill('SIGKILL')
    })
    this.#reconcile()
  }

  get runsYurthub(): boolean {
    return this.#yurthub.length > 0
  }

  get runsHub(): boolean {
    return this.#hub !== undefined
  }

  #reconcile(): void {
    if (!this.reconciles) return
    const folder = join(this.#root, '/etc/kubernetes/manifests')
    const isYurthub = existsSync(join(folder, this.#options.manifest))
    if (isYurthub && !this.runsYurthub && !this.runsHub) this.#startYurthub()
    if (!isYurthub) this.#endYurthub()
    const isHub = existsSync(join(folder, 'nodehub.yaml'))
    if (isHub && this.#hub === undefined) this.#startHub(join(folder, 'nodehub.yaml'))
    if (!isHub) this.#hub?.kill()
  }

  #startYurthub(): void {
    const { proxy, secure, ops } = this.#options.ports
    this.#yurthub = [proxy, secure, ops].map((port) =>
      createServer((_, response) => response.end('OK')).listen(port, '127.0.0.1'),
    )
  }

  #endYurthub(): void {
    for (const server of this.#yurthub) {
      server.close()
      server.closeAllConnections()
    }
    this.#yurthub = []
  }

  #startHub(manifest: string): void {
    const { spec } = parse(readFileSync(manifest, 'utf8')) as {
      spec: { containers: [{ args: string[] }] }
    }
    const pair = join(this.#root, '/var/lib/kubelet/pki/kubelet-client-current.pem')
    const args = spec.containers[0].args.flatMap((arg) => {
      if (arg.startsWith('--root-dir=')) return [`--root-dir=${join(this.#root, arg.slice(11))}`]
      if (arg !== '--bootstrap-mode=kubeletcertificate') return [arg]
      const ca = join(this.#root, '/etc/kubernetes/pki/ca.crt')
      return [
        `--upstream-client-cert=${pair}`,
        `--upstream-client-key=${pair}`,
        `--upstream-ca=${ca}`,
        // Tests need not be root.
        '--anonymous-loopback=node',
      ]
    })
    this.started += 1
    const [command, words] = plainNode(nodehubProgram, ...args)
    const hub = spawn(command, words, {
      stdio: 'ignore',
      env: { ...process.env, NODE_NAME: this.#options.nodeName },
    })
    this.#hub = hub
    hub.once('exit', () => (this.#hub = undefined))
  }

  async #renew(): Promise<void> {
    if (!this.renews || this.#hub === undefined) return
    const { nodeName, ports } = this.#options
    const client = new Client({ url: `http://127.0.0.1:${ports.proxy}`, component: 'kubelet' })
    await client.send(
      `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${nodeName}`,
      {
        method: 'PATCH',
        headers: { 'content-type': 'application/merge-patch+json' },
        body: JSON.stringify({ spec: { renewTime: new Date().toISOString() } }),
      },
    )
  }
}
