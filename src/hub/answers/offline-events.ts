import { LRUCache } from 'lru-cache'
import { goJson } from '../../api/codec/json/write.ts'
import { jsonOfObject } from '../../api/codec/members.ts'
import { selectionOf } from '../../api/codec/selection.ts'
import { schemaOf } from '../../api/codec/schema/schema.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import type { ObjectOfKind } from '../store/store.ts'
import type { RecordQuery } from './merged-records.ts'

/** Some hours of a node whose pods fail: what repeats takes the place of what it repeats. */
export const maxEvents = 1_000
export const maxBytes = 4 * 1024 * 1024

const json = objectRepresentation('json')

/**
 * The latest Events that the node has written offline, in JSON, for a person at the node. No
 * component is shown one, and the cloud never gets them. In memory only.
 */
export class OfflineEvents {
  readonly #events = new LRUCache<string, ObjectOfKind>({
    max: maxEvents,
    maxSize: maxBytes,
    sizeCalculation: ({ object }) => 1 + object.bytes.byteLength,
  })

  /**
   * Keeps an event in place of an older one of its name: a recorder that counts a repetition writes
   * the whole event again. One that cannot be decoded is not kept.
   */
  keep(gvr: GVR, encoding: Encoding, { gvk, object }: ObjectOfKind): void {
    const bytes = object.name === '' ? undefined : decoded(encoding, { gvk, object })
    const key = keyOf(gvr, object.namespace, object.name)
    if (bytes) this.#events.set(key, { gvk, object: { ...object, bytes } })
  }

  get(gvr: GVR, namespace: string, name: string): ObjectOfKind | undefined {
    return this.#events.get(keyOf(gvr, namespace, name))
  }

  /** The events that a list selects; none where a selector cannot be decided. */
  select(query: RecordQuery): readonly ObjectOfKind[] {
    const prefix = prefixOf(query.gvr)
    const all = [...this.#events.entries()].filter(([key]) => key.startsWith(prefix))
    const selection = all.length > 0 ? selectionOf(query.gvr, query, json) : undefined
    if (!selection) return []
    const events = all.map(([, event]) => event)
    return events.filter(({ gvk, object }) => selection.selects(gvk, 'json', object))
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
