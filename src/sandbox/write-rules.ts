import { randomInt } from 'node:crypto'
import type { Json, JsonObject } from '../api/kube/json.ts'
import { objectAt, optionalTextAt, textAt, valueAt, withAt } from '../api/kube/json-at.ts'
import { hasStatus, type Kind } from './kinds.ts'
import type { KubeObject } from './object.ts'

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number
}

/** The cause of a conflict for a write of an older version. */
export const modified =
  'the object has been modified; please apply your changes to the latest version and try again'

/** Whether its deletion has begun. */
export const isDeleting = (object: KubeObject): boolean =>
  optionalTextAt(object, 'metadata', 'deletionTimestamp') !== undefined

/** Whether its deletion waits for a grace period. */
export const graceful = (object: KubeObject): boolean =>
  Number(valueAt(object, 'metadata', 'deletionGracePeriodSeconds') ?? 0) > 0

/**
 * Merges an update: metadata as given except for what the server owns, and either everything but
 * the status or the status alone.
 */
export function mergedUpdate(
  kind: Kind,
  old: KubeObject,
  given: JsonObject,
  subresource: string | undefined,
): JsonObject {
  const owned = [
    'uid',
    'namespace',
    'name',
    'resourceVersion',
    'creationTimestamp',
    'generation',
    'generateName',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
  ]
  let metadata = objectAt(given, 'metadata')
  for (const name of owned) metadata = withAt(metadata, [name], old.metadata[name])
  if (metadata['managedFields'] === undefined) {
    metadata = withAt(metadata, ['managedFields'], old.metadata['managedFields'])
  }
  const status = (source: JsonObject): Json | undefined => source['status']
  if (subresource === 'status') {
    const kept = kind.custom ? old.metadata : metadata
    return withAt({ ...old, metadata: kept }, ['status'], status(given))
  }
  const whole: JsonObject = { ...given, metadata }
  return hasStatus(kind) ? withAt(whole, ['status'], status(old)) : whole
}

/** A pod on a node is removed once its kubelet has ended it. */
export function podGrace(pod: KubeObject, { gracePeriodSeconds }: DeleteOptions): number {
  const wanted = gracePeriodSeconds ?? valueAt(pod, 'spec', 'terminationGracePeriodSeconds') ?? 30
  const ended = ['Failed', 'Succeeded'].includes(textAt(pod, 'status', 'phase'))
  return ended || !optionalTextAt(pod, 'spec', 'nodeName') ? 0 : Number(wanted)
}

const nameLetters = 'bcdfghjklmnpqrstvwxz2456789'

/** A name for `metadata.generateName`. */
export const generatedName = (prefix: string): string =>
  prefix + Array.from({ length: 5 }, () => nameLetters[randomInt(nameLetters.length)]).join('')
