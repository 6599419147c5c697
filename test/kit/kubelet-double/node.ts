import { isDeepStrictEqual } from 'node:util'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { at, type Client } from '../client.ts'
import { ask, get, patch, Stuck } from './requests.ts'
import { getsNodeForStatus, type Release } from './release.ts'

const nodes = '/api/v1/nodes'

/** What a kubelet says of its node when it registers it. */
const ownNode = (nodeName: string): JsonObject => ({
  kind: 'Node',
  apiVersion: 'v1',
  metadata: {
    name: nodeName,
    labels: { 'kubernetes.io/hostname': nodeName, 'kubernetes.io/os': 'linux' },
  },
  status: { capacity: { cpu: '4' } },
})

/**
 * Registers the node, or finds that it is registered and says what has changed (kubernetes
 * pkg/kubelet/kubelet_node_status.go).
 */
export async function register(client: Client, nodeName: string): Promise<JsonObject> {
  const body = ownNode(nodeName)
  const made = await ask(client, 'POST', nodes, { body, fine: [201, 409] })
  if (made.status === 201) return made.object
  const found = await get(client, `${nodes}/${nodeName}`)
  const labels = at(body, 'metadata', 'labels') as JsonObject
  const known = (at(found, 'metadata', 'labels') ?? {}) as JsonObject
  const isSame = Object.entries(labels).every(([name, value]) => known[name] === value)
  return isSame ? found : patch(client, `${nodes}/${nodeName}/status`, { metadata: { labels } })
}

/**
 * Says how the node is, against what the kubelet knows of it; `informed` is its informer's. Returns
 * the node as it was answered: volumes that attach wait until they stand in it as in use.
 */
export async function reportStatus(
  client: Client,
  release: Release,
  informed: JsonObject,
  volumesInUse: readonly string[],
): Promise<JsonObject> {
  const nodeName = at(informed, 'metadata', 'name') as string
  const known = getsNodeForStatus(release)
    ? await get(client, `${nodes}/${nodeName}?resourceVersion=0&timeout=10s`)
    : informed
  const now = new Date().toISOString().replace(/\.\d+/, '')
  const condition = (type: string, status: string): JsonObject => ({
    type,
    status,
    lastHeartbeatTime: now,
    lastTransitionTime: now,
    reason: 'KubeletReady',
    message: 'kubelet is posting ready status',
  })
  const change: Record<string, Json> = {
    '$setElementOrder/conditions': [{ type: 'MemoryPressure' }, { type: 'Ready' }],
    conditions: [condition('MemoryPressure', 'False'), condition('Ready', 'True')],
  }
  // Only what differs from what is known is said.
  if (!isDeepStrictEqual(at(known, 'status', 'volumesInUse') ?? [], volumesInUse)) {
    change['volumesInUse'] = volumesInUse
  }
  const path = `${nodes}/${nodeName}/status?timeout=10s`
  const answered = await patch(client, path, { status: change })
  if (!isDeepStrictEqual(at(answered, 'status', 'volumesInUse') ?? [], volumesInUse)) {
    throw new Stuck('the answer does not say which volumes are in use', 200)
  }
  return answered
}
