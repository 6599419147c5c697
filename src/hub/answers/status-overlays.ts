import { LRUCache } from 'lru-cache'
import { onAbort } from '../../base/abort.ts'
import { mapBatches } from '../../base/batches.ts'
import { withMembers, type MemberChange } from '../../api/codec/members.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { Identity } from '../../api/request/identity.ts'
import type { ObjectOfKind, StoredList } from '../store/store.ts'

/** Enough for a node and its pods, with what a kubelet says of their status. */
export const maxOverlays = 1_024
export const maxBytes = 16 * 1024 * 1024

/** Which object, for whom. */
export interface OverlayKey {
  readonly identity: Identity
  readonly gvr: GVR
  readonly namespace: string
  readonly name: string
}

type Members = ReadonlyMap<string, MemberChange>

interface StatusOverlay {
  readonly uid: string
  /** What the writer has made of the object as the cloud gave it. */
  readonly members: Members
  /** As much of it as the writer was last shown: what its next patch is meant for. */
  readonly shown: Members
}

const none: Members = new Map()

/**
 * What clients have written of the status of objects while the cloud is gone, over the objects as
 * the cloud gave them. Each is shown to who wrote it, in gets and lists; a watch shows the object
 * as the cloud gave it. In memory only: whoever writes a status writes it again.
 */
export class StatusOverlays {
  readonly #overlays = new LRUCache<string, StatusOverlay>({
    max: maxOverlays,
    maxSize: maxBytes,
    sizeCalculation: ({ members }) => 1 + JSON.stringify([...members.values()]).length,
  })

  #back: AbortSignal | undefined

  /** The object as its writer was last shown it: what a patch of its is to be applied to. */
  lastShown(of: OverlayKey, encoding: Encoding, { gvk, object }: ObjectOfKind): ApiObject {
    return overlaid(encoding, gvk, object, this.#of(of, object)?.shown ?? none)
  }

  /** The object as its writer is shown it now; its next patch is meant for that. */
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

  /** A list as `show` shows its objects; `gvk` is that of its objects. */
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
    return { ...stored, batches: mapBatches(stored.batches, (batch) => batch.map(show)) }
  }

  /**
   * The writer is shown these objects as the cloud gave them: its next patches are meant for those.
   */
  resetShown(of: Omit<OverlayKey, 'namespace' | 'name'>): void {
    const prefix = prefixOf(of)
    for (const [key, overlay] of this.#overlays.entries()) {
      if (key.startsWith(prefix)) this.#overlays.set(key, { ...overlay, shown: none })
    }
  }

  /**
   * Keeps what a patch makes of the object that `lastShown` gave, and returns the object with it.
   */
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

  /** Forgets all of them when `back` aborts: the writers tell the cloud itself then. */
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
