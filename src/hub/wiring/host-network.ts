import { kubeletCache, podsOf } from '../boot/kubelet-cache.ts'
import { cursorOf, type Cursor } from '../../api/codec/cursor.ts'
import type { StartConfig } from '../../config/hub-config.ts'
import { hostNetworkReport, type HostNetworkReport } from './status/host-network-report.ts'
import type { Inputs } from '../filter/inputs.ts'
import type { ReservedPort } from '../../api/kube/node-ports.ts'
import { Throttled } from '../../base/throttled.ts'
import type { ObjectStore } from '../store/store.ts'
import type { HubContext } from './hub-context.ts'

/** The pods as the kubelet lists them; `undefined`: it never did. */
export function podsAsListed(
  store: ObjectStore,
  nodeName: string,
): Iterable<{ readonly cursor: Cursor; readonly uid: string }> | undefined {
  const known = kubeletCache(store, nodeName).collection(podsOf(nodeName))
  if (!known) return undefined
  const { encoding, gvk, objects } = known
  return Iterator.from(objects).map((object) => ({
    cursor: cursorOf(encoding, gvk, object),
    uid: object.uid,
  }))
}

interface HostNetworkParts extends HubContext {
  readonly filters: { readonly inputs: Inputs }
  readonly store: ObjectStore
}

/** Reading all pods costs more than the rest of a status, and their networks rarely change. */
const recentMs = 10_000

/** The networks of the node's pods, in reports and metrics. */
export class HostNetwork {
  readonly #parts: HostNetworkParts
  /** The last report, which may be a little old. */
  readonly recent = new Throttled(() => this.report(), recentMs)

  constructor(parts: HostNetworkParts) {
    this.#parts = parts
    this.#show([])
    // They are read in slices of time: a scrape shows those of the one before.
    parts.metrics.onRead(() => void this.recent.get().then(({ pods }) => this.#show(pods ?? [])))
  }

  /**
   * The network of each pod as the kubelet is shown it. Without pods where the cache cannot be
   * read.
   */
  async report(): Promise<HostNetworkReport> {
    const { config, filters, store, log } = this.#parts
    const about = { inputs: filters.inputs, reserved: portsOfHub(config) }
    try {
      return await hostNetworkReport({ ...about, pods: podsAsListed(store, config.nodeName) })
    } catch (err) {
      log.error({ err }, 'cannot read the pods of the node from the cache')
      return hostNetworkReport({ ...about, pods: undefined })
    }
  }

  #show(pods: NonNullable<HostNetworkReport['pods']>): void {
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
