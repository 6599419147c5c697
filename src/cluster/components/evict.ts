import { ApiFailure, isNotFound } from '../api/failure.ts'
import type { ApiServer } from '../api/api-server.ts'
import { typedCalls } from '../api/typed.ts'
import type { ScheduledPod } from './survey.ts'

/**
 * Asks for a pod's eviction, which its disruption budget may refuse. Resolves to what came of it,
 * for an operator.
 */
export async function evict(api: ApiServer, { namespace, name }: ScheduledPod): Promise<string> {
  // A budget's refusal says when to ask again; whoever runs the command decides that.
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
