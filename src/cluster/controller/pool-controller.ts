import { elapsed } from '../../base/clock.ts'
import { nodePoolLabel, type NodePool } from '../../api/kube/node-pool.ts'
import type { JsonObject } from '../../api/kube/json.ts'
import type { Informer } from '../../api/reflector/informer.ts'
import type { ApiServer } from '../api/api-server.ts'
import { isConflict, isNotFound } from '../api/failure.ts'
import { apiInformer } from '../api/informer.ts'
import { recordEvent } from '../events.ts'
import { poolInformer, poolsPath } from '../pools.ts'
import { nodeFacts, type NodeFacts } from './node-facts.ts'
import { podNetworkPods } from './pods.ts'
import { reconcileNode, reconcilePool } from './reconcile.ts'
import { WorkQueue } from './work-queue.ts'

export type WrittenObject = 'node' | 'pool' | 'pool status'

export interface PoolControllerOptions {
  readonly api: ApiServer
  /** Aborts when this process no longer leads. */
  readonly term: AbortSignal
  /** Nodes that are worked on at a time. */
  readonly workers: number
  readonly onWrite?: (what: WrittenObject, name: string) => void
  readonly onConflict?: (what: WrittenObject) => void
  readonly onFailure?: (cause: unknown, what: string) => void
  /** How often a node with a withheld label is reconciled again. Default: a minute. */
  readonly withheldMs?: number
}

/** At least between two writes of a pool's status: many nodes may become Ready together. */
const statusMs = 1_000

/**
 * Brings nodes and pools to the outcome of `reconcileNode` and `reconcilePool`, while this process
 * leads. A node is written at most once for a change, and only in the version that was read; where
 * nothing differs, nothing is written.
 */
export class PoolController implements AsyncDisposable {
  readonly #options: PoolControllerOptions
  readonly #pools: Informer<NodePool>
  readonly #nodes: Informer<NodeFacts>
  readonly #nodeQueue: WorkQueue
  readonly #poolQueue: WorkQueue
  /** Nodes for which the label is withheld, with the pods that it is withheld for. */
  readonly #withheld = new Map<string, readonly string[]>()
  /** When the status of each pool was written, on the monotonic clock. */
  readonly #statusAt = new Map<string, number>()

  constructor(options: PoolControllerOptions) {
    const { api, workers } = options
    const onFailure = (cause: unknown, what: string): void => {
      // Another client wrote first, or another process leads: that is no failure.
      if (!isConflict(cause) && !options.term.aborted) options.onFailure?.(cause, what)
    }
    this.#options = options
    this.#pools = poolInformer(api, {
      onChange: (name, now, before) => this.#poolChanged(name, now, before),
      onFailure: (cause) => onFailure(cause, 'nodepools'),
    })
    this.#nodes = apiInformer<NodeFacts>(api, {
      path: '/api/v1/nodes',
      transform: nodeFacts,
      onChange: (name, now, before) => this.#nodeChanged(name, now, before),
      onFailure: (cause) => onFailure(cause, 'nodes'),
    })
    this.#nodeQueue = new WorkQueue({
      workers,
      after: this.listed,
      act: (name) => this.#node(name),
      onFailure: (name, cause) => onFailure(cause, `node ${name}`),
    })
    this.#poolQueue = new WorkQueue({
      workers: 4,
      after: this.listed,
      act: (name) => this.#pool(name),
      onFailure: (name, cause) => onFailure(cause, `pool ${name}`),
    })
  }

  get nodes(): ReadonlyMap<string, NodeFacts> {
    return this.#nodes.items
  }

  /** Resolves when pools and nodes have been listed. */
  get listed(): Promise<unknown> {
    return Promise.all([this.#pools.listed, this.#nodes.listed])
  }

  /** Nodes for which the label is withheld, with some of the pods that it is withheld for. */
  get withheld(): ReadonlyMap<string, readonly string[]> {
    return this.#withheld
  }

  /** How many nodes and pools wait to be reconciled. */
  get depth(): number {
    return this.#nodeQueue.depth + this.#poolQueue.depth
  }

  #nodeChanged(name: string, now: NodeFacts | undefined, before: NodeFacts | undefined): void {
    const [is, was] = [poolNameOf(now), poolNameOf(before)]
    if (now === undefined) this.#withheld.delete(name)
    if (now !== undefined && (before === undefined || differs(now, before)))
      this.#nodeQueue.add(name)
    if (is === was && now?.ready === before?.ready && now !== undefined && before !== undefined)
      return
    for (const pool of new Set([is, was])) if (pool !== '') this.#poolQueue.add(pool)
  }

  #poolChanged(name: string, now: NodePool | undefined, before: NodePool | undefined): void {
    this.#poolQueue.add(name)
    if (now === undefined) this.#statusAt.delete(name)
    // Only this controller writes the status, and nodes do not depend on it.
    if (now && before && JSON.stringify(now.spec) === JSON.stringify(before.spec)) return
    for (const node of this.#members(name)) this.#nodeQueue.add(node.name)
  }

  #members(pool: string): NodeFacts[] {
    return [...this.#nodes.items.values()].filter((node) => poolNameOf(node) === pool)
  }

  async #node(name: string): Promise<number | undefined> {
    const node = this.#nodes.items.get(name)
    if (node === undefined) return undefined
    const pool = this.#pools.items.get(poolNameOf(node))
    const { api, term } = this.#options
    let outcome = reconcileNode(node, pool, undefined)
    if (outcome.awaits === 'pods')
      outcome = reconcileNode(node, pool, await podNetworkPods(api, name, term))
    if (outcome.write !== undefined) {
      const { metadata, spec } = outcome.write
      const patch = {
        metadata: { ...metadata, resourceVersion: node.resourceVersion },
        ...(spec && { spec }),
      }
      const written = await this.#write('node', name, `/api/v1/nodes/${name}`, patch)
      if (written === undefined) return undefined
    }
    const { withheldFor } = outcome
    if (withheldFor.length === 0) this.#withheld.delete(name)
    else this.#withheld.set(name, withheldFor)
    for (const event of outcome.events)
      // A failure to record an Event undoes nothing.
      await recordEvent(api, node, event).catch((cause: unknown) =>
        this.#options.onFailure?.(cause, `event about node ${name}`),
      )
    return withheldFor.length > 0 ? (this.#options.withheldMs ?? 60_000) : undefined
  }

  async #pool(name: string): Promise<number | undefined> {
    const pool = this.#pools.items.get(name)
    if (pool === undefined) return undefined
    const { write, status } = reconcilePool(pool, this.#members(name))
    const waitMs = (this.#statusAt.get(name) ?? -Infinity) + statusMs - elapsed()
    if (status && waitMs > 0) return waitMs
    let version = pool.metadata.resourceVersion
    for (const [what, path, patch] of [
      ['pool status', `${poolsPath}/${name}/status`, status && { status }],
      ['pool', `${poolsPath}/${name}`, write],
    ] as const) {
      if (patch === undefined) continue
      const metadata = { ...('metadata' in patch && patch.metadata), resourceVersion: version }
      const written = await this.#write(what, name, path, { ...patch, metadata })
      if (written === undefined) return undefined
      if (what === 'pool status') this.#statusAt.set(name, elapsed())
      version = (written as unknown as NodePool).metadata.resourceVersion
    }
    return undefined
  }

  /**
   * Writes to the version that was read. `undefined` where the object is gone. On a conflict the
   * watch brings the newer version, which is reconciled.
   */
  async #write(
    what: WrittenObject,
    name: string,
    path: string,
    patch: object,
  ): Promise<JsonObject | undefined> {
    const { api, term, onWrite, onConflict } = this.#options
    try {
      const written = await api.patch(path, patch as JsonObject, term)
      onWrite?.(what, name)
      return written
    } catch (cause) {
      if (isNotFound(cause)) return undefined
      if (isConflict(cause)) onConflict?.(what)
      throw cause
    }
  }

  /** Resolves when all its work has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([
      this.#nodeQueue[Symbol.asyncDispose](),
      this.#poolQueue[Symbol.asyncDispose](),
      this.#nodes[Symbol.asyncDispose](),
      this.#pools[Symbol.asyncDispose](),
    ])
  }
}

const poolNameOf = (node: NodeFacts | undefined): string => node?.labels[nodePoolLabel] ?? ''

/** A heartbeat changes nothing that the controller decides by. */
const differs = (a: NodeFacts, b: NodeFacts): boolean =>
  JSON.stringify([a.labels, a.annotations, a.taints]) !==
  JSON.stringify([b.labels, b.annotations, b.taints])
