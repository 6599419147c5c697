import type { FilterChain } from '../filter/chain.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { serviceUnavailable, StatusError } from '../../api/kube/status.ts'
import type { Representation } from '../../api/request/representation.ts'

/** Waits until filters have prepared their decisions on objects. Throws a 503 where they cannot. */
export async function prepareFilters(
  chain: FilterChain,
  gvk: GVK,
  { encoding, projection }: Representation,
  objects: readonly ApiObject[],
): Promise<void> {
  if (!chain.needsPreparing || projection !== 'object') return
  try {
    await chain.prepare(gvk, encoding, objects)
  } catch (cause) {
    if (cause instanceof StatusError) throw cause
    throw new StatusError(serviceUnavailable('a filter cannot decide yet which objects to show'), {
      cause,
    })
  }
}
