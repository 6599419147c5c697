import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync } from 'node:fs'
import { get } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { findBinaries } from './binaries.ts'
import { Daemon } from './daemon.ts'
import { startOwnFiles, type OwnFiles } from './own-files.ts'
import { plainNode } from './plain-node.ts'
import { joined } from './joined.ts'
import { until } from '../until.ts'
import { openWorkspace, type Scope, type Workspace } from './workspace.ts'

const binaries = ['ip', 'nsenter'] as const

/**
 * Why no node can have a network of its own here, as the reason of a skipped test; `undefined` if
 * one can.
 */
export function noNodeNetwork(): string | undefined {
  const found = findBinaries(binaries)
  return 'missing' in found ? `no network for a node: ${found.missing}` : undefined
}

/**
 * A network namespace for one node, so that nodes of one machine have their ports to themselves. It
 * has loopback and the node's address on it; what it reaches outside is let in by `reach`.
 */
export class NodeNetwork {
  readonly workspace: Workspace
  /** Of the node. */
  readonly address: string
  readonly podNetwork: string
  readonly #t: Scope
  readonly #nsenter: string
  readonly #files: OwnFiles | undefined

  constructor(t: Scope, workspace: Workspace, number: number, nsenter: string, files?: OwnFiles) {
    this.#nsenter = nsenter
    this.workspace = workspace
    this.address = `198.18.${number}.1`
    this.podNetwork = `198.19.${number}.0/24`
    this.#t = t
    this.#files = files
  }

  /** A command line that does the same inside. */
  inside(command: string, args: readonly string[]): [string, string[]] {
    const namespaces = [
      `--net=/run/netns/${this.workspace.name}`,
      ...(this.#files?.namespaces ?? []),
    ]
    return [this.#nsenter, [...namespaces, command, ...args]]
  }

  /** The root of a node with files of its own, as it is reached from outside. */
  get root(): string {
    if (this.#files === undefined) throw new Error('the node has the files of this machine')
    return this.#files.root
  }

  get hasOwnFiles(): boolean {
    return this.#files !== undefined
  }

  /** Paths that a node with files of its own has written or removed. */
  written(): readonly string[] {
    return this.#files?.written() ?? []
  }

  /** What is at a URL with an address, asked from inside; `undefined` where nobody answers well. */
  fetch(url: string): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    const { hostname, port } = new URL(url)
    const asking = get(url, {
      // Without an agent: one that is made for the request would connect by itself.
      createConnection: () => this.connect(hostname, port),
    })
    asking.setTimeout(5000, () => asking.destroy())
    asking.on('error', () => resolve(undefined))
    asking.on('close', () => resolve(undefined))
    asking.on('response', (answer) => {
      let body = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => (body += chunk))
      answer.on('end', () => resolve(answer.statusCode === 200 ? body : undefined))
    })
    return promise
  }

  /** A connection to an address, made inside. */
  connect(address: string, port: string): Socket {
    const socket = connect(this.#door)
    socket.write(`${address} ${port}\n`)
    return socket
  }

  /** Starts what `fetch` and `connect` go through. */
  async open(): Promise<this> {
    await this.#relay('-', this.#door)
    await until('the way into the node', () => Promise.resolve(existsSync(this.#door)))
    return this
  }

  /**
   * Lets a port of loopback outside be reached at the same inside, for as long as what is returned
   * runs.
   */
  async reach(port: number): Promise<Daemon> {
    const socket = this.workspace.file(`${port}.sock`)
    const door = createServer((from) => joined(from, connect(port, '127.0.0.1')))
    door.listen(socket)
    this.#t.teardown(() => void door.close())
    return this.#relay(String(port), socket)
  }

  get #door(): string {
    return this.workspace.file('door.sock')
  }

  #relay(port: string, socket: string): Promise<Daemon> {
    const [node, script] = plainNode(join(import.meta.dirname, 'relay.ts'), port, socket)
    const [command, args] = this.inside(node, script)
    return new Daemon(this.workspace, `relay-${port}`, {
      command,
      args,
      ready: () => Promise.resolve(true),
    }).start()
  }
}

let numbers = 0

/**
 * Makes a network for a node; it goes with the test. With `hostName` the node has that name, and
 * files of its own, too.
 */
export async function openNodeNetwork(
  t: Scope,
  { hostName }: { readonly hostName?: string } = {},
): Promise<NodeNetwork> {
  const found = findBinaries(binaries)
  if ('missing' in found) throw new Error(found.missing)
  const { ip, nsenter } = found.paths
  const workspace = openWorkspace(t)
  appendFileSync(workspace.file('namespaces'), `${workspace.name}\n`)
  numbers += 1
  const files = hostName === undefined ? undefined : await startOwnFiles(workspace, hostName)
  const network = new NodeNetwork(t, workspace, numbers, nsenter, files)
  execFileSync(ip, ['netns', 'add', workspace.name])
  const within = ['-n', workspace.name]
  execFileSync(ip, [...within, 'link', 'set', 'lo', 'up'])
  execFileSync(ip, [...within, 'addr', 'add', `${network.address}/32`, 'dev', 'lo'])
  return network.open()
}
