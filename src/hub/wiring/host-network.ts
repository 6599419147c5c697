import { join } from 'node:path'
import type { Logger } from 'pino'
import { after, elapsed } from '../../base/clock.ts'
import { kubeletCache, podsOf, podsVersion } from '../boot/kubelet-cache.ts'
import { cursorOf, type Cursor } from '../../api/codec/cursor.ts'
import { objectKind } from '../../api/codec/list.ts'
import type { HubConfig, StartConfig } from '../../config/hub-config.ts'
import {
  hostNetworkReport,
  type HostNetworkReport,
  type PodOnNode,
} from '../filter/host-network/report.ts'
import { shownIfReadable } from '../filter/host-network/rule.ts'
import { ShownPods, type Shown, type ShownPod } from '../filter/host-network/shown-pods.ts'
import { unknownInputs, type Inputs } from '../filter/inputs.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ReservedPort } from '../../api/kube/node-ports.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { pods } from '../../api/kube/resources.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import { nodeIdentity } from '../../api/request/identity.ts'
import type { DetectPropagation } from '../pipeline/propagation-detection.ts'
import type { ObjectStore } from '../store/store.ts'

/**
 * The network on which the kubelet got each pod of this node, kept beside the cache, which may be
 * deleted.
 */
export function shownPodsOf(
  { rootDir, nodeName, hostNetworkPropagation }: HubConfig,
  store: ObjectStore,
  { onKept, log }: { readonly onKept: () => void; readonly log: Logger },
): ShownPods {
  const kept = new ShownPods(join(rootDir, 'host-network.json'), {
    cached: () => shownBefore(store, nodeName, log),
    onKept,
    onFailure: (err) =>
      log.error(
        { err },
        'cannot write host-network.json: after a crash pods may be shown on another network',
      ),
  })
  // A watch that resumes is sent what differs from before, out of the cache: where the file was
  // lost, what was propagated must be known by then.
  const isOn = hostNetworkPropagation !== 'off'
  if (isOn || (!kept.areKept && hasPropagated(shownBefore(store, nodeName, log)))) kept.keep()
  return kept
}

/**
 * How the kubelet has got the cached pods while the filter was off: as their status shows, else
 * unchanged. A hub records each pod before it shows it.
 */
function shownBefore(store: ObjectStore, nodeName: string, log: Logger): readonly ShownPod[] {
  const shown = new Map<string, Shown>()
  try {
    for (const { cursor, uid } of podsIn(store)) {
      const how = shownIfReadable(cursor, undefined, { ...unknownInputs, nodeName })
      if (how === 'propagated') shown.set(uid, how)
      else if (how === 'unchanged' && !shown.has(uid)) shown.set(uid, how)
    }
  } catch (err) {
    log.error({ err }, 'cannot read from the cache how pods were shown before')
  }
  return [...shown]
}

const hasPropagated = (shown: readonly ShownPod[]): boolean =>
  shown.some(([, how]) => how === 'propagated')

/** More pods than a node has. */
const mostRemembered = 1_000

/**
 * Detects pods that yurthub 1.4, or a hub whose file was lost, has propagated, while there is no
 * file: the first one begins it, and the filter acts.
 */
export function propagationDetector({ nodeName }: StartConfig, kept: ShownPods): DetectPropagation {
  /**
   * The version at which each pod was last found not to be propagated: most lists repeat the same
   * pods.
   */
  const checked = new Map<string, string>()
  return ({ component, info }) => {
    if (kept.areKept || component !== 'kubelet' || !info.isResource) return undefined
    if (info.gvr.group !== pods.group || info.gvr.resource !== pods.resource) return undefined
    return (gvk, encoding, object) => {
      const { uid, resourceVersion } = object
      if (uid !== '' && checked.get(uid) === resourceVersion) return false
      const pod = cursorOf(encoding, gvk, object)
      if (shownIfReadable(pod, undefined, { ...unknownInputs, nodeName }) !== 'propagated') {
        if (checked.size >= mostRemembered && !checked.has(uid)) checked.clear()
        checked.set(uid, resourceVersion)
        return false
      }
      // The client's next request waits for the write.
      kept.settle([[uid, 'propagated']])?.catch(() => undefined)
      return true
    }
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
  const known = kubeletCache(store, nodeName).collection(podsOf(nodeName))
  return known && each(known.encoding, known.gvk, known.objects)
}

interface HostNetworkParts {
  readonly config: StartConfig
  readonly inputs: () => Inputs
  readonly store: ObjectStore
  readonly kept: ShownPods
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
 * Reconciles the node's pods: drops what is kept of deleted ones, logs those that are propagated,
 * and shows them in metrics.
 */
export class HostNetwork implements Disposable {
  readonly #parts: HostNetworkParts
  #version: string | undefined
  /** Set until the reconciliation is over. */
  #next: Disposable | undefined
  #changed = false
  #pauseMs = minReconcileMs
  #logged: ReadonlySet<string> = new Set()
  #closed = false

  constructor(parts: HostNetworkParts) {
    this.#parts = parts
    this.#show([])
    this.schedule()
  }

  /**
   * The network of each pod as the kubelet is shown it. Without pods where the cache cannot be
   * read.
   */
  async report(): Promise<HostNetworkReport> {
    const { config, inputs, kept, log } = this.#parts
    const about = { inputs: inputs(), kept, reserved: portsOfHub(config) }
    try {
      return await hostNetworkReport({ ...about, pods: this.#pods() })
    } catch (err) {
      if (!this.#closed) log.error({ err }, 'cannot read the pods of the node from the cache')
      return hostNetworkReport({ ...about, pods: undefined })
    }
  }

  /** Schedules a reconciliation, after a commit. */
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

  async #reconcileNext(): Promise<void> {
    this.#changed = false
    await this.#reconcile()
    this.#next = undefined
    // Changes came meanwhile.
    if (this.#changed) this.schedule()
  }

  async #reconcile(): Promise<void> {
    const { config, store, kept, log } = this.#parts
    const version = podsVersion(store, config.nodeName)
    if (!kept.areKept) return
    if (version === this.#version) return
    const began = elapsed()
    try {
      const { pods } = await this.report()
      if (this.#closed || !pods) return
      kept.retain(new Set(pods.map(({ uid }) => uid)))
      this.#show(pods)
      this.#logPods(pods)
      this.#version = version
    } catch (err) {
      if (!this.#closed) log.error({ err }, 'cannot determine which pods were deleted')
    }
    this.#pauseMs = Math.max(minReconcileMs, (elapsed() - began) / reconcileShare)
  }

  /** Logs each propagated pod once. */
  #logPods(pods: readonly PodOnNode[]): void {
    const propagated = pods.filter(({ network }) => network === 'propagated')
    for (const { uid, namespace, name, clashes } of propagated) {
      if (this.#logged.has(uid)) continue
      const level = clashes.length > 0 ? 'warn' : 'info'
      const about = { pod: `${namespace}/${name}`, clashes }
      this.#parts.log[level](about, 'a pod is shown on the host network')
    }
    this.#logged = new Set(propagated.map(({ uid }) => uid))
  }

  #show(pods: readonly PodOnNode[]): void {
    const { metrics } = this.#parts
    for (const kind of ['host', 'propagated', 'pod'] as const) {
      const shown = pods.filter(({ network }) => network === kind)
      metrics.hostNetworkPods.set({ kind }, shown.length)
    }
    const clashes = pods.reduce((sum, pod) => sum + pod.clashes.length, 0)
    metrics.hostNetworkPortClashes.set(clashes)
  }
}

/** The configured ports. */
const portsOfHub = ({ ops, proxy }: StartConfig): readonly ReservedPort[] => [
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
