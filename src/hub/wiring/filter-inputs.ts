import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import { sleep } from '../../base/clock.ts'
import {
  HubInformer,
  type InformerTarget,
  type InformerObject,
  type InformerState,
} from '../cache/hub-informer.ts'
import type { LiveConfig, StartConfig } from '../../config/hub-config.ts'
import type { Exchange, Handler } from '../../http/exchange/exchange.ts'
import type { InputName, Inputs, NodeFacts } from '../filter/inputs.ts'
import { nodeFactsOf } from '../filter/inputs/node.ts'
import {
  nodesOfBucket,
  poolFactsOf,
  poolNameOf,
  parseNodePool,
  type PoolObservations,
  type ParsedNodePool,
} from '../filter/inputs/pool.ts'
import { qualifiedResource, type GVR } from '../../api/kube/gvk.ts'
import { listAt } from '../../api/kube/json-at.ts'
import { namespacedName } from '../../api/kube/object.ts'
import {
  nodeBuckets,
  nodePools,
  poolNameLabel,
  topologyKeysAnnotation,
} from '../../api/kube/node-pool.ts'
import { nodes, services } from '../../api/kube/resources.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { Cloud } from '../upstream/cloud.ts'
import { hubIdentity } from '../../api/request/identity.ts'
import type { EnabledFilters } from './enabled-filters.ts'
import { unreadable } from './unreadable.ts'
import { logFailure } from './log-failure.ts'

interface InputDependencies {
  readonly config: StartConfig
  readonly live: () => LiveConfig
  readonly cloud: Cloud
  /** Reads from an API server or the cache, below filters and limits. */
  readonly dispatch: Handler<Exchange>
  readonly filters: Pick<EnabledFilters, 'setInputs'>
  /** Called when `serviceAddresses` changes. */
  readonly onServiceAddresses: () => void
  readonly metrics: HubMetrics
  readonly log: Logger
}

/** The inputs of filters that come from the cluster. */
type ClusterInputs = Pick<Inputs, ClusterInputName> & Required<Pick<Inputs, 'untold'>>

type ClusterInputName = (typeof clusterInputNames)[number]

const clusterInputNames = ['node', 'pool', 'poolNodes', 'topologies', 'serviceAddresses'] as const

const nothing: ClusterInputs = {
  node: undefined,
  pool: undefined,
  poolNodes: undefined,
  topologies: undefined,
  serviceAddresses: undefined,
  untold: [],
}

/** The collections that inputs come from. */
type InformerName = 'node' | 'pool' | 'buckets' | 'services'

/** The informer of one of them. */
interface InputInformer {
  /** The object or pool that it reads; for another one it is replaced. */
  readonly of: string
  readonly resource: GVR
  readonly informer: AsyncDisposable & { retry(): void }
  state: InformerState
}

/** How long a request waits for inputs that were never known. */
const patienceMs = 5_000

const asHub = { identity: hubIdentity, credential: 'node' } as const

/**
 * Keeps the inputs of filters up to date: facts of this node, of its pool and of services. It reads
 * only what an acting filter needs, from the first need on for as long as the hub runs; offline,
 * after a restart too, from the cache.
 */
export class FilterInputs implements AsyncDisposable {
  readonly #dependencies: InputDependencies
  readonly #needed = new Set<InputName>()
  readonly #informers = new Map<InformerName, InputInformer>()
  readonly #ending: Promise<void>[] = []
  #closed = false
  #node: NodeFacts | undefined
  #poolRead: ParsedNodePool | undefined
  #bucketNodes: readonly string[] | undefined
  #topologies: Readonly<Record<string, string>> | undefined
  #serviceAddresses: readonly string[] | undefined
  #current: ClusterInputs = nothing
  /** Resolves at the next change of the inputs, or of an informer's state. */
  #nextChange = Promise.withResolvers<void>()

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
      this.#startInformers()
    }
    const needed = [...names]
    this.#retryFailed(needed)
    return needed.some((name) => this.#isPending(name)) ? this.#ensured(needed) : undefined
  }

  /**
   * Retries at once the inputs that were never known and had no answer, as a request waits for
   * them: the next retry may be far off.
   */
  #retryFailed(names: readonly InputName[]): void {
    for (const name of names) {
      if (
        !isLearned(name) ||
        this.#current[name] !== undefined ||
        this.#current.untold.includes(name)
      )
        continue
      for (const source of informersOf[name].map((each) => this.#informers.get(each))) {
        if (source?.state.kind !== 'failed') continue
        this.#setState(source, { kind: 'syncing' })
        source.informer.retry()
      }
    }
  }

  /**
   * Applies the live configuration, and retries refused reads, which may have been granted since.
   */
  reconfigure(): void {
    this.#startInformers()
    for (const { informer } of this.#informers.values()) informer.retry()
    this.#update()
  }

  /** The ClusterIPs of default/kubernetes; `null`: they cannot be read. */
  get serviceAddresses(): readonly string[] | null | undefined {
    const { serviceAddresses, untold } = this.#current
    return serviceAddresses ?? (untold.includes('serviceAddresses') ? null : undefined)
  }

  /** For `/readyz?verbose`: it does not affect readiness. */
  verboseLines(): string[] {
    return [...this.#informers.values()].flatMap((source) => {
      const why = this.#faultOf(source)
      return why === undefined ? [] : [`[ ]filters ${why}; ${consequence}`]
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    this.#nextChange.resolve()
    for (const { informer } of this.#informers.values()) {
      this.#ending.push(Promise.resolve(informer[Symbol.asyncDispose]()))
    }
    this.#informers.clear()
    await Promise.all(this.#ending)
  }

  async #ensured(names: readonly InputName[]): Promise<void> {
    const over = new AbortController()
    const late = sleep(patienceMs, over.signal)
    let isLate = false
    void late.then(() => (isLate = true))
    while (!this.#closed && !isLate && names.some((name) => this.#isPending(name))) {
      await Promise.race([late, this.#nextChange.promise])
    }
    over.abort()
  }

  #isPending(name: InputName): boolean {
    if (!isLearned(name) || this.#current[name] !== undefined) return false
    return this.#isSyncing(...informersOf[name])
  }

  /** Offline nothing can be known but what the cache has. */
  #isAnswered(name: InformerName): boolean {
    const state = this.#informers.get(name)?.state.kind
    const isOffline = this.#dependencies.cloud.online === false
    return state === 'refused' || state === 'synced' || (state === 'failed' && isOffline)
  }

  #isSyncing(...names: readonly InformerName[]): boolean {
    return names.some((name) => this.#informers.get(name)?.state.kind === 'syncing')
  }

  /** Starts the informers of the needed inputs. */
  #startInformers(): void {
    const { config, live } = this.#dependencies
    const { nodePools: way } = live()
    const wants = (...names: readonly InputName[]): boolean =>
      names.some((name) => this.#needed.has(name))
    if (wants('node', 'pool', 'poolNodes')) this.#followNode(config.nodeName)
    const pool = wants('pool', 'poolNodes')
      ? (poolNameOf(this.#poolInputs()) ?? undefined)
      : undefined
    this.#followPool(way === 'off' ? undefined : pool)
    this.#followBuckets(way === 'buckets' && wants('poolNodes') ? pool : undefined)
    if (wants('topologies', 'serviceAddresses')) this.#followServices()
  }

  #followNode(name: string): void {
    this.#start('node', name, nodes, {
      of: { versions: [nodes], ...byName(name), encoding: 'json', onlyMetadata: true },
      read: ({ bytes }) => nodeFactsOf(name, bytes),
      onValues: (values) => {
        // A Node that is missing, perhaps for a moment, changes nothing.
        this.#node = values.get(name) ?? this.#node
        this.#startInformers()
      },
    })
  }

  #followPool(name: string | undefined): void {
    this.#start('pool', name, nodePools, {
      of: {
        versions: [
          nodePools,
          { ...nodePools, version: 'v1beta1' },
          { ...nodePools, version: 'v1alpha1' },
        ],
        ...byName(name ?? ''),
        encoding: 'json',
      },
      read: ({ gvr, bytes }) => parseNodePool(gvr, bytes),
      onValues: (values) => {
        this.#poolRead = values.get(name ?? '')
      },
    })
  }

  #followBuckets(pool: string | undefined): void {
    this.#start('buckets', pool, nodeBuckets, {
      of: {
        versions: [nodeBuckets],
        labelSelector: `${poolNameLabel}=${pool ?? ''}`,
        encoding: 'json',
      },
      read: ({ bytes }) => nodesOfBucket(bytes),
      onValues: (values) => {
        this.#bucketNodes =
          values.size === 0 ? undefined : [...new Set([...values.values()].flat())].toSorted()
      },
    })
  }

  #followServices(): void {
    this.#start('services', '', services, {
      // The representation in which kube-proxy and the kubelet read services: they share one
      // upstream watch.
      of: { versions: [services], encoding: 'protobuf' },
      read: serviceFacts,
      onValues: (values) => {
        const topologies = [...values].flatMap(([name, { topology }]) =>
          topology === undefined ? [] : [[name, topology] as const],
        )
        this.#topologies = Object.fromEntries(topologies.toSorted(([a], [b]) => (a < b ? -1 : 1)))
        // A Service that is missing, perhaps for a moment, changes nothing.
        this.#serviceAddresses = values.get(apiService)?.addresses ?? this.#serviceAddresses
      },
    })
  }

  /** Starts an informer, or stops it where `of` is `undefined`. */
  #start<T>(
    name: InformerName,
    of: string | undefined,
    resource: GVR,
    how: {
      readonly of: InformerTarget
      readonly read: (object: InformerObject) => T | undefined
      readonly onValues: (values: ReadonlyMap<string, T>) => void
    },
  ): void {
    const before = this.#informers.get(name)
    if (before?.of === of || this.#closed) return
    if (before) this.#stop(name, before)
    if (of === undefined) return
    const { cloud, dispatch, log } = this.#dependencies
    const source: InputInformer = {
      of,
      resource,
      state: { kind: 'syncing' },
      informer: new HubInformer<T>({
        of: how.of,
        read: how.read,
        onBehalf: asHub,
        ask: dispatch,
        linkChanged: () => cloud.onlineChanged,
        onValues: (values) => {
          if (this.#informers.get(name) !== source) return
          // The values come before the state: a waiting request finds them.
          how.onValues(values)
          this.#setState(source, { kind: 'synced' })
        },
        onState: (state) => {
          if (this.#informers.get(name) === source) this.#setState(source, state)
        },
        onFailed: (err) =>
          logFailure(
            log,
            'debug',
            { err, resource: qualifiedResource(resource) },
            'cannot read an input of filters',
          ),
      }),
    }
    this.#informers.set(name, source)
  }

  #stop(name: InformerName, source: InputInformer): void {
    this.#informers.delete(name)
    if (name === 'pool') this.#poolRead = undefined
    if (name === 'buckets') this.#bucketNodes = undefined
    this.#showState(source, { kind: 'syncing' })
    this.#ending.push(Promise.resolve(source.informer[Symbol.asyncDispose]()))
  }

  #setState(source: InputInformer, state: InformerState): void {
    const before = this.#faultOf(source)
    source.state = state
    this.#showState(source, state)
    const trouble = this.#faultOf(source)
    if (trouble !== undefined && trouble !== before) {
      this.#dependencies.log.warn(`filters ${trouble}; ${consequence}`)
    }
    this.#update()
  }

  #showState({ resource }: InputInformer, state: InformerState): void {
    const reason = state.kind === 'refused' ? reasonOf(state.code) : undefined
    for (const each of reasons) {
      const labels = { resource: resource.resource, reason: each }
      this.#dependencies.metrics.filterInputMissing.set(labels, each === reason ? 1 : 0)
    }
  }

  /** A missing input, as the continuation of a sentence that begins with “filters”. */
  #faultOf({ of, resource, state }: InputInformer): string | undefined {
    const what = qualifiedResource(resource)
    if (state.kind === 'refused') {
      const { why, advice } = unreadable(state.code)
      return reasonOf(state.code) === 'absent'
        ? `cannot read ${what}: the API server knows no such resource, its CustomResourceDefinition is missing (${state.code})`
        : `cannot read ${what}: ${why} (${state.code})${advice}`
    }
    if (state.kind !== 'synced') return undefined
    if (resource === nodePools && !this.#poolRead)
      return `know nothing of NodePool ${of}: there is none`
    return resource === nodes && !this.#node
      ? `know nothing of Node ${of}: there is none`
      : undefined
  }

  /** Publishes changed inputs to filters. */
  #update(): void {
    const next = this.#computed()
    if (!this.#closed && !isDeepStrictEqual(next, this.#current)) {
      const { filters, onServiceAddresses } = this.#dependencies
      const before = this.serviceAddresses
      this.#current = next
      filters.setInputs(next)
      if (!isDeepStrictEqual(this.serviceAddresses, before)) onServiceAddresses()
    }
    this.#changed()
  }

  #changed(): void {
    this.#nextChange.resolve()
    this.#nextChange = Promise.withResolvers()
  }

  #computed(): ClusterInputs {
    const { nodePools: way } = this.#dependencies.live()
    const last = this.#current
    const known = this.#poolInputs()
    const name = poolNameOf(known)
    // The facts of a new pool are not published before its NodePool was read: half of them would be
    // a guess.
    const isHeld = name !== last.pool?.name && typeof name === 'string' && this.#isPoolUnread()
    const pool = isHeld ? last.pool : poolFactsOf(known)
    const lastNodes = isHeld || last.pool?.name === pool?.name ? last.poolNodes : undefined
    const nodesNow = isHeld || way === 'off' ? undefined : this.#nodesOfPool(way)
    const next = {
      node: this.#node,
      pool,
      poolNodes: pool === null ? this.#alone(way) : (nodesNow ?? this.#lastOr(lastNodes, way)),
      topologies: this.#topologies,
      serviceAddresses: this.#serviceAddresses,
    }
    const untold = clusterInputNames.filter(
      (each) => next[each] === undefined && this.#isUntold(each, last.untold),
    )
    return { ...next, untold }
  }

  /**
   * Whether the NodePool of this name may still be read. Where that fails, the facts of the former
   * pool hold; without any, its name alone serves filters better than none.
   */
  #isPoolUnread(): boolean {
    if (this.#current.pool === undefined) return this.#isSyncing('pool', 'buckets')
    if (this.#dependencies.live().nodePools === 'off') return false
    const isRead = (source: InputInformer | undefined): boolean =>
      source?.state.kind === 'synced' || source?.state.kind === 'refused'
    const buckets = this.#informers.get('buckets')
    return !isRead(this.#informers.get('pool')) || (buckets !== undefined && !isRead(buckets))
  }

  /** Whether an input that was never known has no source, by the last answers. */
  #isUntold(name: ClusterInputName, last: readonly InputName[]): boolean {
    if (last.includes(name)) return true
    // If the pool has a name, its NodePool has to be read first.
    const isOfPool = name === 'pool' || name === 'poolNodes'
    if (isOfPool && poolNameOf(this.#poolInputs()) !== undefined) return false
    const [source = 'node'] = informersOf[name]
    // After a sync it is known that there is no such Node.
    return this.#isAnswered(source)
  }

  #nodesOfPool(way: LiveConfig['nodePools']): readonly string[] | undefined {
    // This node's own pool contains at least this node, even if its members are not listed yet.
    const members = way === 'buckets' ? this.#bucketNodes : this.#poolRead?.nodes
    return members && [...new Set([...members, this.#dependencies.config.nodeName])].toSorted()
  }

  /** A node without a pool is a pool by itself, unless the operator has disabled pools. */
  #alone(way: LiveConfig['nodePools']): readonly string[] | null {
    return way === 'off' ? null : [this.#dependencies.config.nodeName]
  }

  #lastOr(last: ClusterInputs['poolNodes'], way: LiveConfig['nodePools']): typeof last {
    return last === undefined ? this.#untold(way) : last
  }

  /** `null` where it is certain that no source has it. */
  #untold(way: LiveConfig['nodePools']): null | undefined {
    if (way === 'off') return poolNameOf(this.#poolInputs()) === undefined ? undefined : null
    return this.#isAnswered(way === 'buckets' ? 'buckets' : 'pool') ? null : undefined
  }

  #poolIsAbsent(): boolean {
    const state = this.#informers.get('pool')?.state
    if (state?.kind === 'refused') return reasonOf(state.code) === 'absent'
    return state?.kind === 'synced' && this.#poolRead === undefined
  }

  #poolInputs(): PoolObservations {
    const { config, live } = this.#dependencies
    return {
      configuredName: config.nodepoolName,
      node: this.#node,
      nodePool: this.#poolRead,
      readsNodePools: live().nodePools !== 'off',
      isAbsent: this.#poolIsAbsent(),
      lastFacts: this.#current.pool,
    }
  }
}

/** The Service of the API servers. */
const apiService = 'default/kubernetes'

/** What is read of a Service; `undefined`: nothing. */
function serviceFacts({ cursor }: InformerObject) {
  const topology = cursor.annotation(topologyKeysAnnotation)
  if (namespacedName(cursor) !== apiService)
    return topology === undefined ? undefined : { topology }
  const addresses = listAt(cursor.json(['spec']), 'clusterIPs').map(String)
  return { topology, addresses }
}

/** The informers that each input comes from. */
const informersOf: Readonly<Record<ClusterInputName, readonly InformerName[]>> = {
  node: ['node'],
  pool: ['node', 'pool'],
  poolNodes: ['node', 'pool', 'buckets'],
  topologies: ['services'],
  serviceAddresses: ['services'],
}

const isLearned = (name: InputName): name is ClusterInputName => Object.hasOwn(informersOf, name)

/** How filters act without an input. */
const consequence = 'they keep its last value, or act without it'

const reasons = ['forbidden', 'absent', 'refused'] as const

function reasonOf(code: number): (typeof reasons)[number] {
  if (code === 403) return 'forbidden'
  return code === 404 ? 'absent' : 'refused'
}

const byName = (name: string): Pick<InformerTarget, 'fieldSelector'> => ({
  fieldSelector: `metadata.name=${name}`,
})
