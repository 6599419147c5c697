import type { WatchEvent } from '../../codec/watch.ts'
import { resourceVersion, type ResourceVersion } from '../../kube/resource-version.ts'

/** The rest of a watch from `version` on, from elsewhere; `undefined`: not yet. */
export type GoOn = (version: ResourceVersion) => AsyncIterable<readonly WatchEvent[]> | undefined

/**
 * A watch of an API server that is gone on with from a shared collection as soon as that can be, so
 * that its own can be closed: at a bookmark, which says that all up to its version has been told.
 * What an API server answered with the most recent state goes on so, too. `onHandedOver` is called
 * when it does.
 */
export async function* handingOver(
  events: AsyncIterable<readonly WatchEvent[]>,
  goOn: GoOn,
  onHandedOver: () => void,
): AsyncGenerator<readonly WatchEvent[]> {
  let isTold = false
  let rest: AsyncIterable<readonly WatchEvent[]> | undefined
  for await (const group of events) {
    yield group
    isTold ||= group.some((event) => event.type === 'BOOKMARK')
    const version = resourceVersion(versionOf(group.at(-1)))
    rest = isTold && version !== undefined ? goOn(version) : undefined
    // Leaving the loop closes the watch.
    if (rest) break
  }
  if (!rest) return
  onHandedOver()
  yield* rest
}

function versionOf(event: WatchEvent | undefined): string | undefined {
  if (event === undefined || event.type === 'ERROR') return undefined
  return event.type === 'BOOKMARK' ? event.resourceVersion : event.object.resourceVersion
}
