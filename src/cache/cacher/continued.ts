import type { Signal } from '../../base/abort.ts'
import type { WatchEvent } from '../../codec/watch.ts'
import { resourceVersion, type ResourceVersion } from '../../kube/resource-version.ts'

export interface Continuation {
  /** The version the client watches from; absent: it is shown the state first. */
  readonly from: ResourceVersion | undefined
  /** Aborts when the client has gone. */
  readonly signal: Signal
  /**
   * The rest of the watch from `version` on, from a cacher; `undefined`: not yet, or `isCut`, not
   * at all.
   */
  readonly follow: (version: ResourceVersion, isCut: boolean) => Rest | undefined
}

type Rest = AsyncIterable<readonly WatchEvent[]>

/**
 * The client's own upstream watch, until a cacher follows it: as soon as that can be, so that the
 * upstream watch can be closed, or when it is cut. Among initial events, whose versions are in no
 * order, and after an ERROR nothing follows.
 */
export async function* continued(
  events: AsyncIterable<readonly WatchEvent[]>,
  { from, signal, follow }: Continuation,
): AsyncGenerator<readonly WatchEvent[]> {
  let at = from
  let rest: Rest | undefined
  for await (const group of events) {
    yield group
    const last = group.at(-1)
    if (last === undefined) continue
    if (last.type === 'ERROR') {
      at = undefined
      break
    }
    if (at === undefined && !group.some(({ type }) => type === 'BOOKMARK')) continue
    const version = resourceVersion(
      last.type === 'BOOKMARK' ? last.resourceVersion : last.object.resourceVersion,
    )
    at = version ?? at
    rest = at && follow(at, false)
    // Leaving the loop closes the upstream watch.
    if (rest) break
  }
  if (!rest && at && !signal.aborted) rest = follow(at, true)
  if (rest) yield* rest
}
