import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Broadcast } from '../../base/broadcast.ts'
import { after, elapsed } from '../../base/clock.ts'
import { TimeSlices } from '../../base/time-slices.ts'
import { kubeletCache, podsOf } from '../boot/kubelet-cache.ts'
import { cursorOf, type Cursor } from '../../api/codec/cursor.ts'
import { objectKind } from '../../api/codec/list.ts'
import type { HubConfig, StartConfig } from '../../config/hub-config.ts'
import {
  hostNetworkReport,
  type HostNetworkReport,
  type PodOnNode,
} from '../filter/host-network/report.ts'
import { mayBePropagated, verdictFromStatus } from '../filter/host-network/rule.ts'
import { VerdictStore } from '../filter/host-network/verdicts.ts'
import type { PortLedger } from '../filter/host-network/ledger.ts'
import type { Inputs } from '../filter/inputs.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ReservedPort } from '../../api/kube/node-ports.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { pods } from '../../api/kube/resources.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { DetectPropagation } from '../pipeline/propagation-detection.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import { nodeIdentity } from '../../api/request/identity.ts'
import type { ObjectStore } from '../store/store.ts'
import { podsVersion } from './needed.ts'

interface VerdictDependencies {
  /** Announced when the hub begins to store verdicts. */
  readonly kept: Broadcast
  /** Announced when a refused pod has been propagated. */
  readonly revised: Broadcast
  readonly log: Logger
}

/**
 * The network under which pods of this node were shown, kept beside the cache, which may be
 * deleted.
 */
export function verdictsOf(
  { rootDir, nodeName, hostNetworkPropagation }: HubConfig,
  store: ObjectStore,
  { kept, revised, log }: VerdictDependencies,
): VerdictStore {
  const verdicts = new VerdictStore(join(rootDir, 'host-network.json'), {
    // An earlier hub that stored no verdicts recorded each pod before it showed it to the kubelet.
    shownBefore: () => pick(store, log, ({ uid }) => uid),
    onKept: () => kept.announce(),
    onRevised: () => revised.announce(),
    onFailure: (err) =>
      log.error(
        { err },
        'cannot write host-network.json: after a crash pods may be shown on another network',
      ),
  })
  if (verdicts.areKept) return verdicts
  const propagated = (): readonly unknown[] =>
    pick(store, log, ({ cursor }) => isPropagated(cursor, nodeName) || undefined)
  if (hostNetworkPropagation !== 'off' || propagated().length > 0) verdicts.keep()
  return verdicts
}

/**
 * The results of `find` for the readable pods in the cache; for other pods their status decides
 * when they are shown next.
 */
function pick<T>(store: ObjectStore, log: Logger, find: (pod: CachedPod) => T | undefined): T[] {
  const found: T[] = []
  try {
    for (const pod of podsIn(store)) {
      const each = find(pod)
      if (each !== undefined) found.push(each)
    }
  } catch (err) {
    log.error({ err }, 'cannot read from the cache how pods were shown before')
  }
  return found
}

/** More pods than a node has. */
const mostRemembered = 1_000

/**
 * Detects pods that yurthub 1.4, or a hub whose verdicts were lost, has propagated, while no
 * verdicts are stored: the first one makes the hub store verdicts, and its filters act.
 */
export function propagationDetector(
  { nodeName }: StartConfig,
  verdicts: VerdictStore,
): DetectPropagation {
  /**
   * The version at which each pod was last found not to be propagated: most lists repeat the same
   * pods.
   */
  const checked = new Map<string, string>()
  return ({ component, info }) => {
    if (verdicts.areKept || component !== 'kubelet' || !info.isResource) return undefined
    if (info.gvr.group !== pods.group || info.gvr.resource !== pods.resource) return undefined
    return (gvk, encoding, object) => {
      const { uid, resourceVersion } = object
      if (uid !== '' && checked.get(uid) === resourceVersion) return false
      const pod = cursorOf(encoding, gvk, object)
      if (!isPropagated(pod, nodeName)) {
        if (checked.size >= mostRemembered && !checked.has(uid)) checked.clear()
        checked.set(uid, resourceVersion)
        return false
      }
      // The client's next request waits for the write.
      verdicts.settle([[uid, 'propagated']])?.catch(() => undefined)
      return true
    }
  }
}

/**
 * Unreadable pods are reported elsewhere. The status decides most cases, and is smaller than the
 * spec.
 */
function isPropagated(pod: Cursor, nodeName: string): boolean {
  try {
    return verdictFromStatus(pod) === 'propagated' && mayBePropagated(pod, nodeName)
  } catch {
    return false
  }
}

/**
 * Every cached pod of the node, in each representation: a pod may occur several times, at different
 * versions.
 */
function* podsIn(store: ObjectStore): Generator<CachedPod> {
  for (const encoding of ['protobuf', 'json'] as const) {
    const partition = { identity: nodeIdentity, representation: objectRepresentation(encoding).key }
    for (const { key } of store.collections(partition, pods, undefined)) {
      const list = store.list(key)
      if (!list) continue
      for (const batch of list.batches) yield* each(encoding, objectKind(list.gvk), batch)
    }
  }
}

interface CachedPod {
  readonly cursor: Cursor
  readonly uid: string
}

function* each(encoding: Encoding, gvk: GVK, objects: Iterable<ApiObject>): Generator<CachedPod> {
  for (const object of objects) {
    yield { cursor: cursorOf(encoding, gvk, object), uid: object.uid }
  }
}

/** The pods as the kubelet lists them; `undefined`: it never did. */
export function podsAsListed(
  store: ObjectStore,
  nodeName: string,
): Iterable<CachedPod> | undefined {
  const known = kubeletCache(store, nodeName, () => false).collection(podsOf(nodeName))
  return known && each(known.encoding, known.gvk, known.objects)
}

interface HostNetworkParts {
  readonly config: StartConfig
  readonly inputs: () => Inputs
  readonly store: ObjectStore
  readonly verdicts: VerdictStore
  readonly ledger: PortLedger
  readonly metrics: HubMetrics
  readonly log: Logger
}

/**
 * Changes of pods within this time are reconciled together, and reconciling takes at most this part
 * of the time.
 */
const minReconcileMs = 1000
const reconcileShare = 0.1

/**
 * Reconciles the node's pods: drops the verdicts of deleted ones, logs those that are, or would be,
 * propagated, and shows them in metrics.
 */
export class HostNetwork implements Disposable {
  readonly #parts: HostNetworkParts
  readonly #versionAtStart: string
  #version: string | undefined
  /** The inputs of the last report. */
  #reportedInputs = ''
  /** Set until the reconciliation is over. */
  #next: Disposable | undefined
  #changed = false
  #pauseMs = minReconcileMs
  #logged: ReadonlySet<string> = new Set()
  #closed = false

  constructor(parts: HostNetworkParts) {
    this.#parts = parts
    this.#versionAtStart = this.#podsVersion()
    this.#show([])
    this.schedule()
  }

  /**
   * The network of each pod as the kubelet is shown it, and would be. Without pods where the cache
   * cannot be read.
   */
  async report(): Promise<HostNetworkReport> {
    const { config, inputs, verdicts, log } = this.#parts
    const about = {
      inputs: inputs(),
      verdictOf: (uid: string) => verdicts.of(uid),
      mayHaveBeenShown: (uid: string) => verdicts.mayHaveBeenShown(uid),
      reserved: portsOfHub(config),
    }
    try {
      return await hostNetworkReport({ ...about, pods: this.#pods() })
    } catch (err) {
      if (!this.#closed) log.error({ err }, 'cannot read the pods of the node from the cache')
      return hostNetworkReport({ ...about, pods: undefined })
    }
  }

  /** Schedules a reconciliation, after a commit or a change of inputs. */
  schedule(): void {
    if (this.#closed) return
    this.#changed = true
    this.#next ??= after(this.#pauseMs, () => void this.#reconcileNext())
  }

  [Symbol.dispose](): void {
    this.#closed = true
    this.#next?.[Symbol.dispose]()
  }

  #pods(): Iterable<CachedPod> | undefined {
    const { config, store } = this.#parts
    return podsAsListed(store, config.nodeName)
  }

  #podsVersion(): string {
    const { config, store } = this.#parts
    return podsVersion(store, config.nodeName)
  }

  async #reconcileNext(): Promise<void> {
    this.#changed = false
    await this.#reconcile()
    this.#next = undefined
    // Changes came meanwhile.
    if (this.#changed) this.schedule()
  }

  async #reconcile(): Promise<void> {
    const { verdicts, log } = this.#parts
    // Without verdicts no pod is or was propagated.
    if (!verdicts.areKept) return
    const version = this.#podsVersion()
    const { propagation, pool } = this.#parts.inputs()
    const reportInputs = JSON.stringify([propagation, pool])
    if (version === this.#version && reportInputs === this.#reportedInputs) return
    const began = elapsed()
    try {
      if (this.#pods() === undefined) return
      if (version !== this.#version) {
        const present = await this.#present()
        if (this.#closed) return
        verdicts.retain(present, version !== this.#versionAtStart)
        this.#parts.ledger.reconcile()
      }
      const report = await this.report()
      if (this.#closed) return
      this.#show(report.pods ?? [])
      this.#logPods(report)
      this.#version = version
      this.#reportedInputs = reportInputs
    } catch (err) {
      if (!this.#closed) log.error({ err }, 'cannot determine which pods were deleted')
    }
    this.#pauseMs = Math.max(minReconcileMs, (elapsed() - began) / reconcileShare)
  }

  /** The uids of all pods in the cache; pods that are added meanwhile may be missing. */
  async #present(): Promise<ReadonlySet<string>> {
    const slices = new TimeSlices()
    const present = new Set<string>()
    for (const { uid } of podsIn(this.#parts.store)) {
      present.add(uid)
      await slices.pause()
    }
    return present
  }

  /** Logs each pod once for each mode. */
  #logPods({ mode, pods: all = [] }: HostNetworkReport): void {
    const { log } = this.#parts
    const concerned = all.filter(({ network, anew }) =>
      mode === 'on' || mode === 'guarded'
        ? network === 'propagated'
        : network === 'pod' && anew === 'propagated',
    )
    const keyOf = ({ uid }: PodOnNode): string => `${mode} ${uid}`
    if (mode !== 'off') {
      for (const pod of concerned) {
        if (this.#logged.has(keyOf(pod))) continue
        const { namespace, name, clashes } = pod
        const level = clashes.length > 0 ? 'warn' : 'info'
        const what = mode === 'observe' ? 'would be shown' : 'is shown'
        log[level]({ pod: `${namespace}/${name}`, clashes }, `a pod ${what} on the host network`)
      }
    }
    this.#logged = new Set(concerned.map(keyOf))
  }

  #show(all: readonly PodOnNode[]): void {
    const { metrics } = this.#parts
    for (const kind of ['host', 'propagated', 'pod'] as const) {
      const shown = all.filter(({ network }) => network === kind)
      metrics.hostNetworkPods.set({ kind }, shown.length)
    }
    const would = all.filter(({ network, anew }) => network === 'pod' && anew === 'propagated')
    metrics.hostNetworkPods.set({ kind: 'would' }, would.length)
    const clashes = all.reduce((sum, pod) => sum + pod.clashes.length, 0)
    metrics.hostNetworkPortClashes.set(clashes)
  }
}

/** The configured ports. */
export const portsOfHub = ({ ops, proxy }: StartConfig): readonly ReservedPort[] => [
  hubPort(ops.port, 'the health of the hub'),
  hubPort(proxy.port, 'the hub, without TLS'),
  hubPort(proxy.securePort, 'the hub'),
]

const hubPort = (port: number, use: string): ReservedPort => ({
  port,
  protocol: 'TCP',
  use,
  isEssential: true,
})
