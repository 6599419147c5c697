import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { Exchange, ReplySource } from '../../http/exchange/exchange.ts'

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

type OpenWatch = Omit<WatchGroup, 'open' | 'source'> & { source?: ReplySource }

/** A watch until it ends. */
export interface WatchEntry extends Disposable {
  answeredBy(source: ReplySource): void
}

/** The watches of clients, as long as they are open. */
export class OpenWatches {
  readonly #open = new Set<OpenWatch>()

  /** Has to be disposed of when the watch ends. `at`: in milliseconds since the epoch. */
  begin({ info, component }: Pick<Exchange, 'info' | 'component'>, at: number): WatchEntry {
    const { query } = info
    const watch: OpenWatch = {
      component,
      resource: info.isResource ? qualifiedResource(info.gvr) : info.path,
      namespace: (info.isResource ? info.namespace : undefined) ?? '',
      labelSelector: query.get('labelSelector') ?? '',
      fieldSelector: query.get('fieldSelector') ?? '',
      since: at,
    }
    this.#open.add(watch)
    return {
      answeredBy: (source) => void (watch.source = source),
      [Symbol.dispose]: () => void this.#open.delete(watch),
    }
  }

  /** Grouped, those with most open watches first. */
  groups(): readonly WatchGroup[] {
    const groups = new Map<string, WatchGroup>()
    for (const { since, ...what } of this.#open) {
      const key = JSON.stringify(what)
      const { open, since: before } = groups.get(key) ?? { open: 0, since }
      groups.set(key, { ...what, open: open + 1, since: Math.min(before, since) })
    }
    return [...groups.values()].toSorted((a, b) => b.open - a.open)
  }
}
