import { now } from '../../../base/clock.ts'
import { isObjectEvent, type WatchEvent } from '../../../api/codec/watch.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import type { CollectionAddress } from './address.ts'
import { pack, unpack, type Apply, type Displaced } from './messages.ts'
import { newest } from './versions.ts'

/** The newest version of the events; '' for none. */
export function newestVersionIn(events: readonly WatchEvent[]): string {
  let version = ''
  for (const event of events) {
    if (event.type === 'BOOKMARK') version = newest(version, event.resourceVersion)
    else if (isObjectEvent(event)) version = newest(version, event.object.resourceVersion)
  }
  return version
}

/** The operation that applies events, without events that show no object. */
export function toApply(
  collection: CollectionAddress,
  events: readonly WatchEvent[],
  { since, previous, version }: Pick<Apply, 'since' | 'previous' | 'version'>,
): Omit<Apply, 'whole'> {
  const changes = events.filter(isObjectEvent)
  return {
    kind: 'apply',
    collection,
    types: changes.map(({ type }) => type),
    objects: pack(changes.map(({ object }) => object)),
    since,
    previous,
    version,
    confirmedAt: now(),
  }
}

/**
 * The previous state for each event: converts positions among objects to positions among events.
 */
export function toPrevious(
  events: readonly WatchEvent[],
  displaced: Displaced | undefined,
): readonly (ApiObject | undefined)[] {
  if (displaced === undefined) return events.map(() => undefined)
  const objects = unpack(displaced.objects)
  const byPosition = new Map(
    displaced.positions.map((position, index) => [position, objects[index]]),
  )
  let position = 0
  return events.map((event) => {
    if (!isObjectEvent(event)) return undefined
    position += 1
    return byPosition.get(position - 1)
  })
}
