import type { GVK } from '../kube/gvk.ts'
import type { Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import type { Cursor } from './element.ts'
import { JsonCursor } from './json/cursor.ts'
import { ProtobufCursor } from './protobuf/cursor.ts'

export type { Cursor, Element, Path } from './element.ts'

/** A cursor over one object. `gvk` is the kind of the object, not of its list. */
export const cursorOf = (encoding: Encoding, gvk: GVK, object: ApiObject): Cursor =>
  encoding === 'json' ? new JsonCursor(gvk, object) : new ProtobufCursor(gvk, object)

/**
 * Whether a Pod mirrors a static pod, which its kubelet runs from a file. The kubelet compares the
 * mirror with that file, and deletes it where they differ (kubernetes
 * pkg/kubelet/types/pod_update.go).
 */
export const isMirrorPod = (pod: Cursor): boolean =>
  pod.mentions('config.mirror') && pod.annotation('kubernetes.io/config.mirror') !== undefined
