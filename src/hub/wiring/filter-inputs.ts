import { isDeepStrictEqual } from 'node:util'
import { within } from '../../base/clock.ts'
import type { InformerObject } from '../cache/hub-informer.ts'
import type { LiveConfig } from '../../config/hub-config.ts'
import type { InputName, Inputs, NodeFacts } from '../filter/inputs.ts'
import { nodeFactsOf } from '../filter/inputs/node.ts'
import {
  nodesOfBucket,
  poolFactsOf,
  poolNameOf,
  parseNodePool,
  type ParsedNodePool,
} from '../filter/inputs/pool.ts'
import { listAt } from '../../api/kube/json-at.ts'
import { namespacedName } from '../../api/kube/object.ts'
import {
  nodeBuckets,
  nodePools,
  poolNameLabel,
  topologyKeysAnnotation,
} from '../../api/kube/node-pool.ts'
import { nodes, services } from '../../api/kube/resources.ts'
import { selectorOfName } from '../../api/kube/selectors.ts'
import type { EnabledFilters } from './enabled-filters.ts'
import { InputSource, type SourceParts } from './input-source.ts'

interface InputDependencies extends SourceParts {
  readonly filters: Pick<EnabledFilters, 'setInputs'>
  /** Called when `serviceAddresses` changes. */
  readonly onServiceAddresses: () => void
}

/** The inputs of filters that come from the cluster. */
type ClusterInputs = Pick<Inputs, ClusterInputName> & Required<Pick<Inputs, 'untold'>>

const clusterInputNames = ['node', 'pool', 'poolNodes', 'topologies', 'serviceAddresses'] as const

type ClusterInputName = (typeof clusterInputNames)[number]

const isOfCluster = (name: InputName): name is ClusterInputName =>
  (clusterInputNames as readonly InputName[]).includes(name)

/** How long a request waits for inputs that were never known. */
const patienceMs = 5_000

/**
 * Keeps the inputs of filters up to date: facts of this node, of its pool and of services. It reads
 * only what an acting filter needs, from the first need on for as long as the hub runs; offline,
 * after a restart too, from the cache. All inputs follow from what its sources said last.
 */
export class FilterInputs implements AsyncDisposable {
  readonly #dependencies: InputDependencies
  readonly #needed = new Set<InputName>()
  #node: InputSource<NodeFacts> | undefined
  #services: InputSource<ServiceFacts> | undefined
  #pool: Pool | undefined
  /** Until the pool is known, the facts of the one before stay in force. */
  #isPoolKnown = false
  #current: ClusterInputs
  #announced: readonly string[] | null | undefined
  /** Resolves at the next change of a source. */
  #changed = Promise.withResolvers<void>()
  readonly #ending: Promise<void>[] = []
  #closed = false

  constructor(dependencies: InputDependencies) {
    this.#dependencies = dependencies
    this.#current = this.#computed()
    dependencies.filters.setInputs(this.#current)
  }

  /**
   * To be called for the inputs of an acting filter. `undefined`: all that can be known are known;
   * otherwise resolves when that is so, or after `patienceMs`.
   */
  ensure(names: ReadonlySet<InputName>): Promise<void> | undefined {
    if (!names.isSubsetOf(this.#needed)) {
      for (const name of names) this.#needed.add(name)
      this.#follow()
    }
    return this.#arePending(names) ? within(patienceMs, this.#known(names)) : undefined
  }

  /**
   * Applies the live configuration, and retries refused reads, which may have been granted since.
   */
  reconfigure(): void {
    for (const { informer } of this.#sources) informer.retry()
    this.#update()
  }

  /** The ClusterIPs of default/kubernetes; `null`: they cannot be read. */
  get serviceAddresses(): readonly string[] | null | undefined {
    return this.#services?.value?.addresses ?? whereAnswered(this.#services)
  }

  /** For `/readyz?verbose`: it does not affect readiness. */
  verboseLines(): string[] {
    return this.#sources.flatMap(({ fault }) => (fault === undefined ? [] : `[ ]filters ${fault}`))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    this.#changed.resolve()
    this.#end(this.#sources)
    await Promise.all(this.#ending)
  }

  async #known(names: ReadonlySet<InputName>): Promise<void> {
    while (!this.#closed && this.#arePending(names)) await this.#changed.promise
  }

  #arePending(names: ReadonlySet<InputName>): boolean {
    for (const name of names) if (isOfCluster(name) && this.#isPending(name)) return true
    return false
  }

  #isPending(name: ClusterInputName): boolean {
    if (this.#current[name] !== undefined) return false
    const isOfServices = name === 'topologies' || name === 'serviceAddresses'
    const sources = isOfServices ? [this.#services] : name === 'node' ? [this.#node] : this.#sources
    return sources.some((source) => source?.isSyncing)
  }

  get #sources(): readonly InputSource<unknown>[] {
    const all = [this.#node, ...sourcesOf(this.#pool), this.#services]
    return all.filter((each) => each !== undefined)
  }

  /** Follows the sources of the needed inputs. */
  #follow(): void {
    const { config, live } = this.#dependencies
    const needs = (...names: readonly InputName[]): boolean =>
      names.some((name) => this.#needed.has(name))
    if (needs('node', 'pool', 'poolNodes')) this.#node ??= this.#source(nodeOf(config.nodeName))
    if (needs('topologies', 'serviceAddresses')) this.#services ??= this.#source(ofServices)
    const name = poolNameOf(config.nodepoolName, this.#node?.value)
    if (name === undefined || !needs('pool', 'poolNodes')) return
    const wanted = { name, way: live().nodePools }
    if (this.#pool?.name !== wanted.name || this.#pool.way !== wanted.way) {
      this.#end(sourcesOf(this.#pool))
      this.#pool = this.#poolOf(wanted)
      this.#isPoolKnown = false
    }
    this.#isPoolKnown ||= isKnown(this.#pool, this.#current.pool !== undefined)
  }

  #source<T>(collection: ConstructorParameters<typeof InputSource<T>>[1]): InputSource<T> {
    return new InputSource<T>(this.#dependencies, collection, () => this.#update())
  }

  #poolOf({ name, way }: Pool): Pool {
    if (name === null || way === 'off') return { name, way }
    const nodePool = this.#source(nodePoolOf(name))
    if (way === 'status') return { name, way, nodePool }
    return { name, way, nodePool, buckets: this.#source(bucketsOf(name)) }
  }

  #end(sources: readonly AsyncDisposable[]): void {
    for (const each of sources) this.#ending.push(Promise.resolve(each[Symbol.asyncDispose]()))
  }

  /** Publishes changed inputs to filters. */
  #update(): void {
    this.#follow()
    const next = this.#computed()
    if (!isDeepStrictEqual(next, this.#current)) {
      this.#current = next
      this.#dependencies.filters.setInputs(next)
    }
    const { serviceAddresses } = this
    if (!isDeepStrictEqual(serviceAddresses, this.#announced)) {
      this.#announced = serviceAddresses
      this.#dependencies.onServiceAddresses()
    }
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  #computed(): ClusterInputs {
    const [node, facts, pool] = [this.#node?.value, this.#services?.value, this.#pool]
    const ofPool =
      pool && !this.#isPoolKnown
        ? { pool: this.#current.pool, poolNodes: this.#current.poolNodes }
        : { pool: pool && poolFactsOf({ ...pool, node }), poolNodes: pool && this.#nodesOf(pool) }
    const next = {
      node,
      ...ofPool,
      topologies: facts?.topologies,
      serviceAddresses: facts?.addresses,
    }
    const isOfNode = (name: ClusterInputName): boolean =>
      name === 'node' || name === 'pool' || name === 'poolNodes'
    const untold = clusterInputNames.filter((name) => {
      // If the pool has a name, its NodePool has to be read first.
      const isNamed = name !== 'node' && pool !== undefined
      const source = isOfNode(name) ? this.#node : this.#services
      return next[name] === undefined && source?.isAnswered && !(isOfNode(name) && isNamed)
    })
    return { ...next, untold }
  }

  /** A node without a pool is a pool by itself, and in its own pool before that says so. */
  #nodesOf({ name, way, nodePool, buckets }: Pool): readonly string[] | null | undefined {
    const { nodeName } = this.#dependencies.config
    if (way === 'off') return null
    const members = name === null ? [] : buckets ? buckets.value : nodePool?.value?.nodes
    return members
      ? [...new Set([...members, nodeName])].toSorted()
      : whereAnswered(buckets ?? nodePool)
  }
}

/** A pool, and what is read of it. */
interface Pool {
  /** `null`: none. */
  readonly name: string | null
  /** How its nodes are found. */
  readonly way: LiveConfig['nodePools']
  readonly nodePool?: InputSource<ParsedNodePool>
  readonly buckets?: InputSource<readonly string[]>
}

const sourcesOf = (pool: Pool | undefined): readonly InputSource<unknown>[] =>
  [pool?.nodePool, pool?.buckets].filter((each) => each !== undefined)

/**
 * Whether a pool is known: half of its facts would be a guess. While its NodePool cannot be read,
 * the facts of a pool before it hold; without any, its name alone serves filters better than none.
 */
const isKnown = (pool: Pool, hasFormer: boolean): boolean =>
  sourcesOf(pool).every(({ isSettled, isSyncing }) => (hasFormer ? isSettled : !isSyncing))

/** `null` where it is certain that there is none. */
const whereAnswered = (source: InputSource<unknown> | undefined): null | undefined =>
  source?.isAnswered ? null : undefined

const named = (name: string) => ({ fieldSelector: selectorOfName(name), encoding: 'json' }) as const

/** A Node that is missing, perhaps for a moment, changes nothing. */
const nodeOf = (name: string) => ({
  of: { versions: [nodes], ...named(name), onlyMetadata: true } as const,
  about: `Node ${name}`,
  read: ({ bytes }: InformerObject) => nodeFactsOf(name, bytes),
  value: (items: ReadonlyMap<string, NodeFacts>) => items.get(name),
})

const poolVersions = [
  nodePools,
  { ...nodePools, version: 'v1beta1' },
  { ...nodePools, version: 'v1alpha1' },
] as const

const nodePoolOf = (name: string) => ({
  of: { versions: poolVersions, ...named(name) } as const,
  about: `NodePool ${name}`,
  read: ({ gvr, bytes }: InformerObject) => parseNodePool(gvr, bytes),
  value: (items: ReadonlyMap<string, ParsedNodePool>, last: ParsedNodePool | undefined) => {
    const found = items.get(name)
    return found && { ...found, nodes: found.nodes ?? last?.nodes }
  },
})

const bucketsOf = (pool: string) => ({
  of: {
    versions: [nodeBuckets],
    labelSelector: `${poolNameLabel}=${pool}`,
    encoding: 'json',
  } as const,
  read: ({ bytes }: InformerObject) => nodesOfBucket(bytes),
  value: (items: ReadonlyMap<string, readonly string[]>) =>
    items.size === 0 ? undefined : [...items.values()].flat(),
})

interface ServiceFacts {
  readonly topologies: Readonly<Record<string, string>>
  /** The ClusterIPs of default/kubernetes. */
  readonly addresses: readonly string[] | undefined
}

/** The Service of the API servers. */
const apiService = 'default/kubernetes'

interface ReadService {
  readonly topology: string | undefined
  readonly addresses?: readonly string[]
}

/** What is read of a Service; `undefined`: nothing. */
function readService({ cursor }: InformerObject): ReadService | undefined {
  const topology = cursor.annotation(topologyKeysAnnotation)
  if (namespacedName(cursor) !== apiService)
    return topology === undefined ? undefined : { topology }
  const addresses = listAt(cursor.json(['spec']), 'clusterIPs').map(String)
  return { topology, addresses }
}

/** A Service that is missing, perhaps for a moment, changes nothing. */
function serviceFactsOf(
  items: ReadonlyMap<string, ReadService>,
  last: ServiceFacts | undefined,
): ServiceFacts {
  const topologies = [...items].flatMap(([name, { topology }]) =>
    topology === undefined ? [] : [[name, topology] as const],
  )
  return {
    topologies: Object.fromEntries(topologies.toSorted(([a], [b]) => (a < b ? -1 : 1))),
    addresses: items.get(apiService)?.addresses ?? last?.addresses,
  }
}

const ofServices = {
  // The representation in which kube-proxy and the kubelet read services: they share one upstream
  // watch.
  of: { versions: [services], encoding: 'protobuf' } as const,
  read: readService,
  value: serviceFactsOf,
}
