import { mkdirSync, writeFileSync } from 'node:fs'
import type { Workspace } from '../../test/kit/cluster/workspace.ts'
import { freePort } from '../../test/kit/free-port.ts'
import { FaultyDisk, disk } from '../../test/crash/disk.ts'
import { filteringNode } from '../upstream/filtered.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { hubDaemon, startHub, type HubDaemon, type HubOptions } from './hub.ts'
import type { RunningPeer } from './peer.ts'

/** A hub of a row's own, whose process ends when this is disposed of. */
export interface OwnHub extends AsyncDisposable {
  readonly peer: RunningPeer
}

/** As a row sees them. */
export type HubsOfRows = Pick<OwnHubs, keyof OwnHubs>

/** Hubs that rows start for themselves, from the same build as the peer that is measured. */
export class OwnHubs {
  readonly #upstream: Upstream
  readonly #workspace: Workspace
  /** What is started once a build, by its name. */
  readonly #kept = new Map<string, Promise<unknown>>()
  #started = 0

  constructor(upstream: Upstream, workspace: Workspace) {
    this.#upstream = upstream
    this.#workspace = workspace
  }

  /**
   * A hub of a node in a host-network pool with a cache of its own, so that the first look at an
   * object is the first.
   */
  filtering(of: RunningPeer): Promise<OwnHub> {
    const flags = [
      `--node-name=${filteringNode}`,
      '--host-network-propagation=on',
      '--plain-proxy=true',
    ]
    return this.#start(of, 'filtering', { flags }, this.#asAdministrator)
  }

  /** A hub with its debugger at `inspector`, so that its garbage can be collected; one for all. */
  inspected(of: RunningPeer): Promise<OwnHub & { readonly inspector: number }> {
    return this.#once(of, 'inspected', async () => {
      const inspector = await freePort()
      const nodeFlags = [`--inspect=127.0.0.1:${inspector}`]
      return { ...(await this.#start(of, 'inspected', { nodeFlags })), inspector }
    })
  }

  /** A hub that records everything for everyone and may read everything; one for all. */
  recordingAll(of: RunningPeer): Promise<OwnHub> {
    return this.#once(of, 'all', () =>
      this.#start(of, 'all', { flags: ['--cache-components=*'] }, this.#asAdministrator),
    )
  }

  /** The same with the filters of this module, and with nothing seen. */
  filteringBy(of: RunningPeer, module: string): Promise<OwnHub> {
    const file = this.#workspace.file('filters.mjs')
    writeFileSync(file, module, { mode: 0o600 })
    const flags = ['--cache-components=*', `--filter-module=${file}`]
    return this.#start(of, 'filtering-by', { flags }, this.#asAdministrator)
  }

  /** A hub with its disk between; one for all. Throws where there is nothing to put between. */
  onDisk(of: RunningPeer): Promise<{ readonly peer: RunningPeer; readonly disk: FaultyDisk }> {
    return this.#once(of, 'on-disk', async () => {
      const [name, folder] = [`${of.name}-on-disk`, this.#workspace.file(`${of.name}-disk`)]
      mkdirSync(folder)
      const made = disk(folder)
      if ('reason' in made) throw new Error(`its disk cannot be watched: ${made.reason}`)
      mkdirSync(this.#workspace.file(name))
      const control = this.#workspace.file(`${of.name}-disk`, 'control')
      const under = new FaultyDisk(made.library, this.#workspace.file(name), control)
      const own = await startHub(this.#upstream, this.#workspace, {
        ...this.#of(of, name),
        env: under.env,
      })
      return { peer: own, disk: under }
    })
  }

  /** A hub that is started and ended by who measures it, with its API server at `server`. */
  restarted(of: RunningPeer, name: string, server = this.#upstream.node.url): Promise<HubDaemon> {
    const upstream = { ...this.#upstream, node: { ...this.#upstream.node, url: server } }
    const named = this.#of(of, `${of.name}-${name}`)
    // Where the folder is there, the first start of an installation keeps its compiled code, too.
    const compiled = this.#workspace.file(named.name, 'compiled')
    mkdirSync(compiled, { recursive: true, mode: 0o700 })
    return hubDaemon(upstream, this.#workspace, named, 'started')
  }

  #of({ name: peer, hubModule: module }: RunningPeer, name: string) {
    if (module === undefined || (peer !== 'hub' && peer !== 'against'))
      throw new Error(`${peer} is no hub`)
    return { peer, module, name }
  }

  async #start(
    of: RunningPeer,
    what: string,
    options: Partial<HubOptions>,
    upstream = this.#upstream,
  ): Promise<OwnHub> {
    const named = this.#of(of, `${of.name}-${what}-${++this.#started}`)
    const peer = await startHub(upstream, this.#workspace, { ...named, ...options })
    return { peer, [Symbol.asyncDispose]: async () => peer.stop?.() }
  }

  #once<Started>(of: RunningPeer, what: string, start: () => Promise<Started>): Promise<Started> {
    const name = `${of.name} ${what}`
    const started = (this.#kept.get(name) as Promise<Started> | undefined) ?? start()
    this.#kept.set(name, started)
    return started
  }

  /** An API server lets no node read another's Node, nor endpoint slices. */
  get #asAdministrator(): Upstream {
    return { ...this.#upstream, kubeconfig: this.#upstream.adminKubeconfig }
  }
}
