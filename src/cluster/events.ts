import { hash } from 'node:crypto'
import { now } from '../base/clock.ts'
import { timeText } from '../certificates/validity.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { isConflict } from './api/failure.ts'
import type { ApiServer } from './api/api-server.ts'

/** The object that an Event is about. */
export interface Regarding {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** The content of an Event. */
export interface EventMessage {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

/** Events of cluster-scoped objects are in this namespace (client-go tools/record). */
const path = '/api/v1/namespaces/default/events'

/**
 * Records an Event about an object, once as long as the API server keeps it. Events are best
 * effort: callers go on where this fails.
 */
export async function recordEvent(
  api: ApiServer,
  about: Regarding,
  said: EventMessage,
): Promise<void> {
  const time = timeText(now())
  const name = `${about.name.slice(0, 220)}.${digestOf(about, said)}`
  const event: JsonObject = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace: 'default' },
    involvedObject: { ...about },
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

/** Equal for the same message about the same object, in every replica and after each restart. */
const digestOf = (about: Regarding, said: EventMessage): string =>
  hash('sha256', JSON.stringify([about.kind, about.uid, said.reason, said.message])).slice(0, 16)
