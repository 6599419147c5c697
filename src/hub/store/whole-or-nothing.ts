import { mapBatches } from '../../base/batches.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import { StoreFailure, type StoredList } from './store.ts'

/**
 * What a kubelet lists and acts upon fatally: a pod that is missing is ended and its volumes are
 * cleaned up, without its node pods are refused for good (kubernetes pkg/kubelet/config,
 * pkg/kubelet/lifecycle). Of other lists those objects that can be read are better than none.
 */
const fatal = new Set(['pods', 'nodes'])

/**
 * The list, if it may be shown: where a hole would be fatal, `undefined` if there is one, and
 * iterating throws a `StoreFailure` as soon as one is found, so that its reader sees a break.
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
