import { LRUCache } from 'lru-cache'
import { goJson } from '../../api/codec/json/write.ts'
import { jsonOfObject } from '../../api/codec/members.ts'
import type { ObjectOfKind } from '../../api/codec/object.ts'
import { selectionOf } from '../../api/codec/selection.ts'
import { schemaOf } from '../../api/codec/schema/schema.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import type { RecordQuery } from './newest-records.ts'

/**
 * Of events, and as many statuses: some hours of a node whose pods fail, as a repetition replaces
 * the event that it repeats.
 */
export const maxWrites = 1_000
export const maxBytes = 16 * 1024 * 1024

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
 * What the node has written last, for a person at the node: Events that an API server accepted in
 * the last hour of the link, and Events and statuses that were written offline. No component is
 * shown any of it: all that a component reads is one state, the cloud's. In memory only.
 */
export class NodeWrites {
  readonly #lastOnline: () => number
  readonly #events = latest<NodeEvent>()
  /** Objects with their last status. */
  readonly #patched = latest<ObjectOfKind>()

  /** `lastOnline`: now or, offline, when the link was cut; in milliseconds since the epoch. */
  constructor(lastOnline: () => number) {
    this.#lastOnline = lastOnline
  }

  /**
   * Keeps an event in place of an older one of its name: a recorder that counts a repetition writes
   * the whole event again. One that cannot be decoded is not kept. `sent`: as of a `NodeEvent`.
   */
  keep(gvr: GVR, encoding: Encoding, event: ObjectOfKind, sent?: Pick<NodeEvent, 'sentAt'>): void {
    const kept = inJson(encoding, event)
    if (kept) this.#events.set(keyOf(gvr, kept.object), { ...kept, ...sent })
  }

  /** Keeps an object with the status that was written offline, at the cloud's version. */
  keepPatched(gvr: GVR, encoding: Encoding, patched: ObjectOfKind): void {
    const kept = inJson(encoding, patched)
    if (kept) this.#patched.set(keyOf(gvr, kept.object), kept)
  }

  get(gvr: GVR, namespace: string, name: string): NodeEvent | undefined {
    const event = this.#events.get(keyOf(gvr, { namespace, name }))
    return event && this.#isCurrent(event) ? event : undefined
  }

  /** The same object at the same version with its last status, in JSON. */
  patched(gvr: GVR, { uid, resourceVersion, ...named }: ApiObject): ObjectOfKind | undefined {
    const kept = this.#patched.get(keyOf(gvr, named))
    const isOf = kept?.object.uid === uid && kept.object.resourceVersion === resourceVersion
    return isOf ? kept : undefined
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

const latest = <T extends ObjectOfKind>(): LRUCache<string, T> =>
  new LRUCache({
    max: maxWrites,
    maxSize: maxBytes,
    sizeCalculation: ({ object }) => 1 + object.bytes.byteLength,
  })

function inJson(encoding: Encoding, { gvk, object }: ObjectOfKind): ObjectOfKind | undefined {
  if (object.name === '' || (encoding === 'protobuf' && !schemaOf(gvk))) return undefined
  try {
    const bytes = Buffer.from(goJson(jsonOfObject(encoding, gvk, object)))
    return { gvk, object: { ...object, bytes } }
  } catch {
    return undefined
  }
}

const prefixOf = ({ group, version, resource }: GVR): string => `${group}/${version}/${resource} `

const keyOf = (gvr: GVR, { namespace, name }: Pick<ApiObject, 'namespace' | 'name'>): string =>
  `${prefixOf(gvr)}${namespace}/${name}`
