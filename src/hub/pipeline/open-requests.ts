import { qualifiedResource } from '../../api/kube/gvk.ts'
import { isWatch } from '../../api/request/request-info.ts'
import type { Exchange, ReplySource } from '../../http/exchange/exchange.ts'

/** A request of a client until it is over. */
export interface OpenRequest {
  readonly exchange: Exchange
  /** When it began, in milliseconds since the epoch. */
  readonly since: number
  /** Of its answer; absent: there is none yet. */
  readonly source: ReplySource | undefined
  /** Bytes of the body that were sent to the client. */
  readonly sentBytes: number
}

/** The open watches of one component on one collection. */
export interface WatchGroup {
  readonly component: string
  /** `endpointslices.discovery.k8s.io` */
  readonly resource: string
  /** Empty: all namespaces, or a cluster-scoped resource. */
  readonly namespace: string
  readonly labelSelector: string
  readonly fieldSelector: string
  /** The source of their events; absent: none has answered yet. */
  readonly source?: ReplySource
  readonly open: number
  /** When the oldest began, in milliseconds since the epoch. */
  readonly since: number
}

/** The watches among open requests: grouped, those with most open watches first. */
export function watchGroups(open: Iterable<OpenRequest>): readonly WatchGroup[] {
  const groups = new Map<string, WatchGroup>()
  for (const { exchange, source, since } of open) {
    const { info, component } = exchange
    if (!isWatch(info)) continue
    const what = {
      component,
      resource: info.isResource ? qualifiedResource(info.gvr) : info.path,
      namespace: (info.isResource ? info.namespace : undefined) ?? '',
      labelSelector: info.query.get('labelSelector') ?? '',
      fieldSelector: info.query.get('fieldSelector') ?? '',
      ...(source && { source }),
    }
    const key = JSON.stringify(what)
    const known = groups.get(key) ?? { open: 0, since }
    const oldest = Math.min(known.since, since)
    groups.set(key, { ...what, open: known.open + 1, since: oldest })
  }
  return [...groups.values()].toSorted((a, b) => b.open - a.open)
}
