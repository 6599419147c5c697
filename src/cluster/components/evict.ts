import { ApiFailure, isNotFound } from '../api/failure.ts'
import type { ApiServer } from '../api/api-server.ts'
import { typedCalls } from '../api/typed.ts'
import type { ScheduledPod } from './survey.ts'

/**
 * Requests the eviction of a pod, which its disruption budget may refuse. Resolves to the outcome,
 * for an operator.
 */
export async function evict(api: ApiServer, { namespace, name }: ScheduledPod): Promise<string> {
  // A refusal by the budget is final: the operator decides when to try again.
  const { core } = typedCalls(api, { tries: 1 })
  try {
    await core.createNamespacedPodEviction({
      namespace,
      name,
      body: { metadata: { name, namespace } },
    })
    return 'evicted'
  } catch (cause) {
    if (isNotFound(cause)) return 'gone already'
    if (cause instanceof ApiFailure && cause.status === 429)
      return 'not evicted: its disruption budget does not allow it now'
    throw cause
  }
}
