import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import { sleep } from '../../base/clock.ts'
import {
  Informer,
  type InformerTarget,
  type InformerObject,
  type InformerState,
} from '../cache/informer.ts'
import type { LiveConfig, StartConfig } from '../../config/hub-config.ts'
import type { Exchange, Handler } from '../../http/exchange/exchange.ts'
import type { InputName, NodeFacts } from '../filter/inputs.ts'
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
import {
  nodeBuckets,
  nodePools,
  poolNameLabel,
  topologyKeysAnnotation,
} from '../../api/kube/node-pool.ts'
import { nodes, services } from '../../api/kube/resources.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { Cloud } from '../upstream/cloud.ts'
import { nodeIdentity, sharedIdentity } from '../../api/request/identity.ts'
import type { EnabledFilters } from './filters.ts'
import { KeptInputs, learnedNames, type LearnedInputs, type LearnedName } from './kept-inputs.ts'
import { unreadable } from './unreadable.ts'
import { logFailure } from './log-failure.ts'

export interface InputSurroundings {
  readonly config: StartConfig
  readonly live: () => LiveConfig
  readonly cloud: Cloud
  /** Asks the cloud, or the cache, below filters and limits. */
  readonly dispatch: Handler<Exchange>
  /** The same, as one of those who read what is shared. */
  readonly sharing: Handler<Exchange>
  readonly filters: Pick<EnabledFilters, 'inform'>
  readonly metrics: HubMetrics
  readonly log: Logger
}

/** What is asked for: a collection each. */
type InformerName = 'node' | 'pool' | 'buckets' | 'services'

/** One of them, while it is followed. */
interface InputInformer {
  /** What it was begun for; of another it has to be begun anew. */
  readonly of: string
  readonly resource: GVR
  readonly informer: AsyncDisposable & { retry(): void }
  state: InformerState
}

/** How long a request waits for what its filters have never known. */
const patienceMs = 2_000

const asHub = { identity: sharedIdentity, credential: 'node' } as const
const asNode = { identity: nodeIdentity, credential: 'node' } as const

/**
 * Learns what filters may know of this node, of its pool and of services, and tells the filters:
 * only what a filter needs that acts for somebody, from then on for as long as the hub runs. Before
 * anything is asked, and offline, they know what was known last.
 */
export class FilterInputs implements AsyncDisposable {
  readonly #surroundings: InputSurroundings
  readonly #kept: KeptInputs
  readonly #wanted = new Set<InputName>()
  readonly #informers = new Map<InformerName, InputInformer>()
  readonly #ending: Promise<void>[] = []
  #closed = false
  #node: NodeFacts | undefined
  #poolRead: ParsedNodePool | undefined
  #bucketNodes: readonly string[] | undefined
  #topologies: Readonly<Record<string, string>> | undefined
  #known: LearnedInputs
  /** What filters were told of it: once it was on the disk. */
  #published: LearnedInputs
  /** Resolves at the next change of what is known, or of how it stands with it. */
  #next = Promise.withResolvers<void>()

  constructor(surroundings: InputSurroundings) {
    const { config, filters } = surroundings
    const { nodeName, rootDir } = config
    this.#surroundings = surroundings
    this.#kept = new KeptInputs(join(rootDir, 'filter-inputs.json'), nodeName)
    this.#known = this.#kept.latest
    this.#node = this.#known.node
    this.#topologies = this.#known.topologies
    this.#known = this.#present()
    this.#published = this.#known
    filters.inform(this.#known)
  }

  /**
   * A filter that needs these acts for somebody. `undefined`: all that can be known is known; else
   * resolves when that is so, or after a moment.
   */
  ensure(names: ReadonlySet<InputName>): Promise<void> | undefined {
    if (!names.isSubsetOf(this.#wanted)) {
      for (const name of names) this.#wanted.add(name)
      this.#follow()
    }
    const wanted = [...names]
    this.#askAgain(wanted)
    return wanted.some((name) => this.#isPending(name)) ? this.#learned(wanted) : undefined
  }

  /**
   * What has never been known, and nobody has answered, is asked for at once where somebody waits
   * for it: the next try may be far off.
   */
  #askAgain(names: readonly InputName[]): void {
    for (const name of names) {
      if (!isLearned(name) || this.#known[name] !== undefined || this.#known.untold.includes(name))
        continue
      for (const source of informersOf[name].map((each) => this.#informers.get(each))) {
        if (source?.state.kind !== 'failed') continue
        this.#enter(source, { kind: 'syncing' })
        source.informer.retry()
      }
    }
  }

  /** What is asked for may be another, and what was refused may be granted. */
  reconfigure(): void {
    this.#follow()
    for (const { informer } of this.#informers.values()) informer.retry()
    this.#update()
  }

  /** For `/readyz?verbose`: it does not affect readiness. */
  remarks(): string[] {
    return [...this.#informers.values()].flatMap((source) => {
      const why = this.#trouble(source)
      return why === undefined ? [] : [`[ ]filters ${why}; ${meanwhile}`]
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    this.#next.resolve()
    for (const { informer } of this.#informers.values()) {
      this.#ending.push(Promise.resolve(informer[Symbol.asyncDispose]()))
    }
    this.#informers.clear()
    await Promise.all(this.#ending)
    await this.#kept[Symbol.asyncDispose]()
  }

  async #learned(names: readonly InputName[]): Promise<void> {
    const over = new AbortController()
    const late = sleep(patienceMs, over.signal)
    let isLate = false
    void late.then(() => (isLate = true))
    while (!this.#closed && !isLate && names.some((name) => this.#isPending(name))) {
      await Promise.race([late, this.#next.promise])
    }
    over.abort()
  }

  #isPending(name: InputName): boolean {
    if (!isLearned(name) || this.#published[name] !== undefined) return false
    // What is known and not told yet is on its way to the disk.
    return this.#known[name] !== undefined || this.#isAsking(...informersOf[name])
  }

  #isAsking(...names: readonly InformerName[]): boolean {
    return names.some((name) => this.#informers.get(name)?.state.kind === 'syncing')
  }

  /** Begins to follow what is wanted and not followed yet. */
  #follow(): void {
    const { config, live } = this.#surroundings
    const { nodePools: way } = live()
    const wants = (...names: readonly InputName[]): boolean =>
      names.some((name) => this.#wanted.has(name))
    if (wants('node', 'pool', 'poolNodes')) this.#followNode(config.nodeName)
    const pool = wants('pool', 'poolNodes') ? (poolNameOf(this.#ofPool()) ?? undefined) : undefined
    this.#followPool(way === 'off' ? undefined : pool)
    this.#followBuckets(way === 'buckets' && wants('poolNodes') ? pool : undefined)
    if (wants('topologies')) this.#followServices()
  }

  #followNode(name: string): void {
    this.#begin('node', name, nodes, {
      of: { versions: [nodes], ...byName(name), encoding: 'json', onlyMetadata: true },
      read: ({ bytes }) => nodeFactsOf(name, bytes),
      onValues: (values) => {
        // A Node that is gone for a moment, or not there yet, says nothing new.
        this.#node = values.get(name) ?? this.#node
        this.#follow()
      },
    })
  }

  #followPool(name: string | undefined): void {
    this.#begin('pool', name, nodePools, {
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
    this.#begin('buckets', pool, nodeBuckets, {
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
    this.#begin('services', '', services, {
      // As kube-proxy and the kubelet read them, so that there is one watch of them.
      of: { versions: [services], encoding: 'protobuf' },
      read: ({ cursor }) => cursor.annotation(topologyKeysAnnotation),
      onValues: (values) => {
        this.#topologies = Object.fromEntries([...values].toSorted(([a], [b]) => (a < b ? -1 : 1)))
      },
    })
  }

  /** `undefined`: it is not to be followed. */
  #begin<T>(
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
    if (before) this.#end(name, before)
    if (of === undefined) return
    const { cloud, dispatch, sharing, log } = this.#surroundings
    const isService = name === 'services'
    const source: InputInformer = {
      of,
      resource,
      state: { kind: 'syncing' },
      informer: new Informer<T>({
        of: how.of,
        read: how.read,
        onBehalf: isService ? asNode : asHub,
        ask: isService ? sharing : dispatch,
        linkChanged: () => cloud.onlineChanged,
        onValues: (values) => {
          if (this.#informers.get(name) !== source) return
          // What is told comes before how it stands: whoever waits for it finds it.
          how.onValues(values)
          this.#enter(source, { kind: 'synced' })
        },
        onState: (state) => {
          if (this.#informers.get(name) === source) this.#enter(source, state)
        },
        onFailed: (err) =>
          logFailure(
            log,
            'debug',
            { err, resource: qualifiedResource(resource) },
            'an input could not be read',
          ),
      }),
    }
    this.#informers.set(name, source)
  }

  #end(name: InformerName, source: InputInformer): void {
    this.#informers.delete(name)
    if (name === 'pool') this.#poolRead = undefined
    if (name === 'buckets') this.#bucketNodes = undefined
    this.#show(source, { kind: 'syncing' })
    this.#ending.push(Promise.resolve(source.informer[Symbol.asyncDispose]()))
  }

  #enter(source: InputInformer, state: InformerState): void {
    const before = this.#trouble(source)
    source.state = state
    this.#show(source, state)
    const trouble = this.#trouble(source)
    if (trouble !== undefined && trouble !== before) {
      this.#surroundings.log.warn(`filters ${trouble}; ${meanwhile}`)
    }
    this.#update()
  }

  #show({ resource }: InputInformer, state: InformerState): void {
    const reason = state.kind === 'refused' ? reasonOf(state.code) : undefined
    for (const each of reasons) {
      const labels = { resource: resource.resource, reason: each }
      this.#surroundings.metrics.filterInputMissing.set(labels, each === reason ? 1 : 0)
    }
  }

  /** What filters lack, in words that follow “filters”. */
  #trouble({ of, resource, state }: InputInformer): string | undefined {
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

  /** Tells filters what has changed, once that is on the disk. */
  #update(): void {
    const next = this.#present()
    const { filters, log } = this.#surroundings
    if (isDeepStrictEqual(next, this.#known)) {
      this.#changed()
      return
    }
    this.#known = next
    void this.#kept
      .keep(next)
      .catch((err: unknown) => log.error({ err }, 'what filters know could not be written'))
      .then(() => {
        if (this.#closed) return
        this.#published = this.#kept.latest
        filters.inform(this.#published)
        this.#changed()
      })
  }

  #changed(): void {
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }

  #present(): LearnedInputs {
    const { nodePools: way } = this.#surroundings.live()
    const last = this.#known
    const known = this.#ofPool()
    const name = poolNameOf(known)
    const isAsked = this.#isAsking('pool', 'buckets')
    // Of a pool that is new here nothing is told before its NodePool was asked for: half of it
    // would be a guess.
    const isHeld = name !== last.pool?.name && typeof name === 'string' && isAsked
    const pool = isHeld ? last.pool : poolFactsOf(known)
    const lastNodes = isHeld || last.pool?.name === pool?.name ? last.poolNodes : undefined
    const nodesNow = isHeld || way === 'off' ? undefined : this.#nodesOfPool(way)
    const next = {
      node: this.#node,
      pool,
      poolNodes: pool === null ? this.#alone(way) : (nodesNow ?? lastNodes ?? this.#untold(way)),
      topologies: this.#topologies,
    }
    const untold = learnedNames.filter(
      (each) => next[each] === undefined && this.#isUntold(each, last.untold),
    )
    return { ...next, untold }
  }

  /** Of what has never been known, whether nobody tells it, as far as was heard last. */
  #isUntold(name: LearnedName, last: readonly InputName[]): boolean {
    if (last.includes(name)) return true
    // Where the pool has a name it is the NodePool that is asked for yet.
    const isOfPool = name === 'pool' || name === 'poolNodes'
    if (isOfPool && poolNameOf(this.#ofPool()) !== undefined) return false
    const state = this.#informers.get(name === 'topologies' ? 'services' : 'node')?.state.kind
    // It is known, too, that there is no such Node.
    return state === 'refused' || state === 'synced'
  }

  #nodesOfPool(way: LiveConfig['nodePools']): readonly string[] | undefined {
    // A pool in which this node is has nodes: where none are named, nobody has come to it yet.
    const told = way === 'buckets' ? this.#bucketNodes : this.#poolRead?.nodes
    return told && [...new Set([...told, this.#surroundings.config.nodeName])].toSorted()
  }

  /** Of a node in no pool: it is a pool by itself, unless the operator leaves pools out. */
  #alone(way: LiveConfig['nodePools']): readonly string[] | null {
    return way === 'off' ? null : [this.#surroundings.config.nodeName]
  }

  /** `null` where it is settled that nobody tells. */
  #untold(way: LiveConfig['nodePools']): null | undefined {
    if (way === 'off') return poolNameOf(this.#ofPool()) === undefined ? undefined : null
    const state = this.#informers.get(way === 'buckets' ? 'buckets' : 'pool')?.state.kind
    return state === 'refused' || state === 'synced' ? null : undefined
  }

  #poolIsAbsent(): boolean {
    const state = this.#informers.get('pool')?.state
    if (state?.kind === 'refused') return reasonOf(state.code) === 'absent'
    return state?.kind === 'synced' && this.#poolRead === undefined
  }

  #ofPool(): PoolObservations {
    const { config, live } = this.#surroundings
    return {
      configuredName: config.nodepoolName,
      node: this.#node,
      nodePool: this.#poolRead,
      readsNodePools: live().nodePools !== 'off',
      isAbsent: this.#poolIsAbsent(),
      lastFacts: this.#known.pool,
    }
  }
}

/** Where what is learned comes from. */
const informersOf: Readonly<Record<LearnedName, readonly InformerName[]>> = {
  node: ['node'],
  pool: ['node', 'pool'],
  poolNodes: ['node', 'pool', 'buckets'],
  topologies: ['services'],
}

const isLearned = (name: InputName): name is LearnedName => Object.hasOwn(informersOf, name)

/** What filters do about what is missing. */
const meanwhile = 'they keep what they knew last, or do without'

const reasons = ['forbidden', 'absent', 'refused'] as const

function reasonOf(code: number): (typeof reasons)[number] {
  if (code === 403) return 'forbidden'
  return code === 404 ? 'absent' : 'refused'
}

const byName = (name: string): Pick<InformerTarget, 'fieldSelector'> => ({
  fieldSelector: `metadata.name=${name}`,
})
