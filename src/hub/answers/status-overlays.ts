import { LRUCache } from 'lru-cache'
import { onAbort } from '../../base/abort.ts'
import { withMembers, type MemberChange } from '../../api/codec/members.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { Identity } from '../../api/request/identity.ts'
import type { ObjectOfKind, StoredList } from '../store/store.ts'

/** Enough for the statuses of a node and its pods. */
export const maxOverlays = 1_024
export const maxBytes = 16 * 1024 * 1024

/** An object, and the identity that has written its status. */
export interface OverlayKey {
  readonly identity: Identity
  readonly gvr: GVR
  readonly namespace: string
  readonly name: string
}

type Members = ReadonlyMap<string, MemberChange>

interface StatusOverlay {
  readonly uid: string
  /** The writer's changes of the stored object. */
  readonly members: Members
  /** The changes that the writer last read: its next patch applies to these. */
  readonly shown: Members
}

const none: Members = new Map()

/**
 * Statuses that clients have written offline, as overlays on the stored objects. The writer alone
 * sees its overlay, in gets and lists; watches show the stored object. In memory only: a writer of
 * a status writes it again.
 */
export class StatusOverlays {
  readonly #overlays = new LRUCache<string, StatusOverlay>({
    max: maxOverlays,
    maxSize: maxBytes,
    sizeCalculation: ({ members }) => 1 + JSON.stringify([...members.values()]).length,
  })

  #back: AbortSignal | undefined

  /** The object as its writer last read it: its next patch applies to this. */
  lastShown(of: OverlayKey, encoding: Encoding, { gvk, object }: ObjectOfKind): ApiObject {
    return overlaid(encoding, gvk, object, this.#of(of, object)?.shown ?? none)
  }

  /** The object as its writer sees it now; the writer's next patch applies to this. */
  show(
    of: OverlayKey,
    { encoding, projection }: Representation,
    { gvk, object }: ObjectOfKind,
  ): ApiObject {
    const overlay = projection === 'object' ? this.#of(of, object) : undefined
    if (!overlay) return object
    if (overlay.shown !== overlay.members) {
      this.#overlays.set(keyOf(of), { ...overlay, shown: overlay.members })
    }
    return overlaid(encoding, gvk, object, overlay.members)
  }

  /**
   * The object as `show` returns it, for another reader than its writer; the writer's next patch
   * applies to the same object as before.
   */
  peek(of: OverlayKey, encoding: Encoding, { gvk, object }: ObjectOfKind): ApiObject {
    return overlaid(encoding, gvk, object, this.#of(of, object)?.members ?? none)
  }

  /** A list with each object as `show` returns it; `gvk` is the objects' kind. */
  showAll(
    of: Omit<OverlayKey, 'namespace' | 'name'>,
    representation: Representation,
    gvk: GVK,
    stored: StoredList,
  ): StoredList {
    if (!this.#isAnyOf(of)) return stored
    const show = (object: ApiObject): ApiObject => {
      const { namespace, name } = object
      return this.show({ ...of, namespace, name }, representation, { gvk, object })
    }
    return { ...stored, batches: Iterator.from(stored.batches).map((batch) => batch.map(show)) }
  }

  /** The writer reads these objects without overlays: its next patches apply to those. */
  resetShown(of: Omit<OverlayKey, 'namespace' | 'name'>): void {
    const prefix = prefixOf(of)
    for (const [key, overlay] of this.#overlays.entries()) {
      if (key.startsWith(prefix)) this.#overlays.set(key, { ...overlay, shown: none })
    }
  }

  /** Keeps the changes of a patch to the object that `lastShown` returned. Returns the result. */
  set(
    of: OverlayKey,
    encoding: Encoding,
    { gvk, object }: ObjectOfKind,
    changes: readonly MemberChange[],
  ): ApiObject {
    const shown = this.#of(of, object)?.shown ?? none
    const changed = changes.map((change) => [change.path.join('.'), change] as const)
    const members: Members = new Map([...shown, ...changed])
    const patched = overlaid(encoding, gvk, object, members)
    this.#overlays.set(keyOf(of), { uid: object.uid, members, shown })
    return patched
  }

  /** Drops all overlays when `back` aborts: their writers reach an API server again. */
  clearOn(back: AbortSignal): void {
    if (this.#back === back) return
    this.#back = back
    onAbort(back, () => this.#overlays.clear())
  }

  #of(of: OverlayKey, { uid }: ApiObject): StatusOverlay | undefined {
    if (this.#overlays.size === 0) return undefined
    const overlay = this.#overlays.get(keyOf(of))
    // Another object of the same name has a status of its own.
    return overlay?.uid === uid ? overlay : undefined
  }

  #isAnyOf(of: Omit<OverlayKey, 'namespace' | 'name'>): boolean {
    const prefix = prefixOf(of)
    return [...this.#overlays.keys()].some((key) => key.startsWith(prefix))
  }
}

const overlaid = (encoding: Encoding, gvk: GVK, object: ApiObject, members: Members): ApiObject =>
  members.size === 0 ? object : withMembers(encoding, gvk, object, [...members.values()])

const prefixOf = ({ identity, gvr }: Omit<OverlayKey, 'namespace' | 'name'>): string =>
  `${JSON.stringify([identity, gvr.group, gvr.version, gvr.resource])} `

const keyOf = (of: OverlayKey): string => `${prefixOf(of)}${of.namespace}/${of.name}`
