import { cursorOf, type Cursor } from '../../src/api/codec/cursor.ts'
import { readObject } from '../../src/api/codec/object.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import type { Encoding } from '../../src/api/kube/media-type.ts'
import type { ApiObject } from '../../src/api/kube/object.ts'
import { toProtobuf } from '../../src/sandbox/protobuf.ts'

export const podKind = { group: '', version: 'v1', kind: 'Pod' }

export interface PodParts {
  readonly metadata?: JsonObject
  readonly spec?: JsonObject
  readonly status?: JsonObject
}

/** A pod of node-1 as an API server sends it, its name for its uid. */
export function podObject(encoding: Encoding, name: string, parts: PodParts = {}): ApiObject {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: name, resourceVersion: '7', ...parts.metadata },
    spec: { nodeName: 'node-1', containers: [{ name: 'main', image: 'main' }], ...parts.spec },
    status: { phase: 'Pending', ...parts.status },
  }
  const body = encoding === 'json' ? Buffer.from(JSON.stringify(pod)) : toProtobuf(podKind, pod)
  return readObject(encoding, 'object', body).object
}

export const podCursor = (encoding: Encoding, object: ApiObject): Cursor =>
  cursorOf(encoding, podKind, object)

/**
 * What a kubelet says first of a pod on the host's network, of one on the pod network, and later of
 * the latter.
 */
export const statuses = {
  onHost: {
    hostIP: '10.0.0.1',
    hostIPs: [{ ip: '10.0.0.1' }],
    podIP: '10.0.0.1',
    podIPs: [{ ip: '10.0.0.1' }],
  },
  beingMade: { hostIP: '10.0.0.1', hostIPs: [{ ip: '10.0.0.1' }] },
  onPodNetwork: {
    hostIP: '10.0.0.1',
    hostIPs: [{ ip: '10.0.0.1' }],
    podIP: '10.244.0.7',
    podIPs: [{ ip: '10.244.0.7' }],
  },
} as const
