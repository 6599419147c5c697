import { hash } from 'node:crypto'
import { now } from '../base/clock.ts'
import { timeText } from '../certificates/validity.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { isConflict } from './api/failure.ts'
import type { ApiServer } from './api/api-server.ts'
import type { NodeFacts } from './controller/node-facts.ts'
import type { NodeEvent } from './controller/reconcile.ts'

/** Events of cluster-scoped objects are in this namespace (client-go tools/record). */
const path = '/api/v1/namespaces/default/events'

/**
 * Records an Event about a node, once as long as the API server keeps it. Events are best effort:
 * callers go on where this fails.
 */
export async function recordEvent(
  api: ApiServer,
  node: Pick<NodeFacts, 'name' | 'uid'>,
  said: NodeEvent,
): Promise<void> {
  const time = timeText(now())
  // Equal for the same message about the same node, in every replica and after each restart.
  const digest = hash('sha256', JSON.stringify([node.uid, said.reason, said.message]))
  const name = `${node.name.slice(0, 220)}.${digest.slice(0, 16)}`
  const event: JsonObject = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace: 'default' },
    // Events of controllers have the node's uid, those of the kubelet its name in that place;
    // kubectl describe reads both.
    involvedObject: { apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid },
    ...said,
    source: { component: 'nodehub-cluster' },
    reportingComponent: 'nodehub-cluster',
    reportingInstance: '',
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  }
  try {
    await api.create(path, event)
  } catch (error) {
    if (!isConflict(error)) throw error
  }
}
