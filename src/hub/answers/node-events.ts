import { LRUCache } from 'lru-cache'
import { now } from '../../base/clock.ts'
import { goJson } from '../../api/codec/json/write.ts'
import { jsonOfObject } from '../../api/codec/members.ts'
import { selectionOf } from '../../api/codec/selection.ts'
import { schemaOf } from '../../api/codec/schema/schema.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import type { ObjectOfKind } from '../store/store.ts'
import type { RecordQuery } from './newest-records.ts'

/** Some hours of a node whose pods fail: a repetition replaces the event that it repeats. */
export const maxEvents = 1_000
export const maxBytes = 4 * 1024 * 1024

/** As long as the API server keeps an event by default (kube-apiserver, `--event-ttl`). */
export const eventLifetimeMs = 60 * 60_000

const json = objectRepresentation('json')

/** An Event that the node has written, in JSON. */
export interface NodeEvent extends ObjectOfKind {
  /**
   * When an API server accepted it, in milliseconds since the epoch; absent: it was written
   * offline, and the cloud never gets it.
   */
  readonly sentAt?: number
}

/**
 * The latest Events that the node has written, for a person at the node: those that an API server
 * accepted in the last hour of the link, and those written offline. No component is shown one. In
 * memory only.
 */
export class NodeEvents {
  readonly #lastOnline: () => number
  readonly #events = new LRUCache<string, NodeEvent>({
    max: maxEvents,
    maxSize: maxBytes,
    sizeCalculation: ({ object }) => 1 + object.bytes.byteLength,
  })

  /** `lastOnline`: now or, offline, when the link was cut; in milliseconds since the epoch. */
  constructor(lastOnline: () => number) {
    this.#lastOnline = lastOnline
  }

  /**
   * Keeps an event that was written offline in place of an older one of its name: a recorder that
   * counts a repetition writes the whole event again. One that cannot be decoded is not kept.
   */
  keep(gvr: GVR, encoding: Encoding, event: ObjectOfKind): void {
    this.#keep(gvr, encoding, event, {})
  }

  /** The same with an event as an API server has just accepted it. */
  keepSent(gvr: GVR, encoding: Encoding, event: ObjectOfKind): void {
    this.#keep(gvr, encoding, event, { sentAt: now() })
  }

  #keep(
    gvr: GVR,
    encoding: Encoding,
    { gvk, object }: ObjectOfKind,
    sent: Pick<NodeEvent, 'sentAt'>,
  ): void {
    const bytes = object.name === '' ? undefined : decoded(encoding, { gvk, object })
    const key = keyOf(gvr, object.namespace, object.name)
    if (bytes) this.#events.set(key, { gvk, object: { ...object, bytes }, ...sent })
  }

  get(gvr: GVR, namespace: string, name: string): NodeEvent | undefined {
    const event = this.#events.get(keyOf(gvr, namespace, name))
    return event && this.#isCurrent(event) ? event : undefined
  }

  /** The events that a list selects; none where a selector cannot be decided. */
  select(query: RecordQuery): readonly NodeEvent[] {
    const prefix = prefixOf(query.gvr)
    const all = [...this.#events.entries()].filter(([key]) => key.startsWith(prefix))
    const selection = all.length > 0 ? selectionOf(query.gvr, query, json) : undefined
    if (!selection) return []
    const events = all.map(([, event]) => event).filter((event) => this.#isCurrent(event))
    return events.filter(({ gvk, object }) => selection.selects(gvk, 'json', object))
  }

  /** Whether the cloud may still have had it when the hub last reached an API server. */
  #isCurrent({ sentAt }: NodeEvent): boolean {
    return sentAt === undefined || sentAt > this.#lastOnline() - eventLifetimeMs
  }
}

function decoded(encoding: Encoding, { gvk, object }: ObjectOfKind): Buffer | undefined {
  if (encoding === 'protobuf' && !schemaOf(gvk)) return undefined
  try {
    return Buffer.from(goJson(jsonOfObject(encoding, gvk, object)))
  } catch {
    return undefined
  }
}

const prefixOf = ({ group, version, resource }: GVR): string => `${group}/${version}/${resource} `

const keyOf = (gvr: GVR, namespace: string, name: string): string =>
  `${prefixOf(gvr)}${namespace}/${name}`
