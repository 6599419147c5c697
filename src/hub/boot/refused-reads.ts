import { elapsed } from '../../base/clock.ts'
import { isRead } from '../../api/request/request-info.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { Exchange, WireReply } from '../../http/exchange/exchange.ts'

/** A read that the hub answered 503, and that nothing has answered since. */
export interface RefusedRead {
  readonly component: string
  /** `endpointslices.discovery.k8s.io` */
  readonly resource: string
  /** Empty: all namespaces, or a cluster-scoped resource. */
  readonly namespace: string
  /** Of one object, also by a field selector; empty for a list or watch. */
  readonly name: string
}

/** Clients choose what they read: beyond so many, the oldest refusal is forgotten. */
const mostReads = 256

/**
 * A component that goes on needing an object requests it again within minutes, also a container
 * that is restarted ever less often (k/k pkg/kubelet: at most five minutes apart).
 */
const forgottenMs = 15 * 60_000

/** The reads of components that the hub refuses at present. A list and its watch are one read. */
export class RefusedReads {
  readonly #reads = new Map<string, RefusedRead & { readonly at: number }>()

  /** `reply`: the head of an answer is enough, as a watch is open for hours. */
  answered({ info, component }: Pick<Exchange, 'info' | 'component'>, reply: WireReply): void {
    if (!info.isResource || !isRead(info) || reply.kind === 'upgrade') return
    const isRefused = reply.from === 'hub' && reply.status === 503
    if (!isRefused && this.#reads.size === 0) return
    const { gvr, namespace = '', query } = info
    const [labels, fields] = [query.get('labelSelector') ?? '', query.get('fieldSelector') ?? '']
    const resource = qualifiedResource(gvr)
    const { name = /^metadata\.name=([^,]+)$/.exec(fields)?.[1] ?? '' } = info
    const key = JSON.stringify([component, resource, namespace, name, labels, fields])
    // What the hub itself answers besides (429, 410) says nothing about the object.
    if (isRefused || reply.from !== 'hub') this.#reads.delete(key)
    if (!isRefused) return
    this.#reads.set(key, { component, resource, namespace, name, at: elapsed() })
    const [oldest] = this.#reads.keys()
    if (this.#reads.size > mostReads && oldest !== undefined) this.#reads.delete(oldest)
  }

  get all(): readonly RefusedRead[] {
    for (const [key, { at }] of this.#reads) {
      if (elapsed() - at >= forgottenMs) this.#reads.delete(key)
    }
    return [...this.#reads.values()].map(({ at: _at, ...read }) => read)
  }
}
