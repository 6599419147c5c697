import { mapBatches } from '../../base/batches.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import { StoreFailure, type StoredList } from './store.ts'

/**
 * Resources of which an incomplete list is fatal: a kubelet ends a missing pod and cleans up its
 * volumes, and refuses pods for good without its node (kubernetes pkg/kubelet/config,
 * pkg/kubelet/lifecycle). Of other resources an incomplete list is better than none.
 */
const fatal = new Set(['pods', 'nodes'])

/**
 * The list, unless an incomplete one would be fatal. Then: `undefined` where an object is known to
 * be damaged, and iterating throws a `StoreFailure` as soon as one is found, so that the client
 * sees a break.
 */
export function wholeOrNothing(
  { group, resource }: GVR,
  stored: StoredList | undefined,
): StoredList | undefined {
  if (!stored || group !== '' || !fatal.has(resource)) return stored
  if (stored.isWhole()) return { ...stored, batches: unbroken(stored) }
  stored[Symbol.dispose]()
  return undefined
}

function unbroken({ batches, isWhole }: StoredList): StoredList['batches'] {
  return mapBatches(batches, (objects) => {
    if (!isWhole()) throw new StoreFailure('an object of the list is damaged')
    return objects
  })
}
