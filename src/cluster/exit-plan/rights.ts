import { ApiFailure } from '../api/failure.ts'

const rule = (group: string, resources: readonly string[], verbs: readonly string[]) => ({
  apiGroups: [group],
  resources,
  verbs,
})

/**
 * Whether the API server refused for want of a right: admission, which refuses with 403 as well,
 * has other words (apiserver pkg/endpoints/handlers/responsewriters).
 */
export const isMissingRight = (cause: unknown): boolean =>
  cause instanceof ApiFailure && cause.status === 403 && / cannot \w+ resource /.test(cause.message)

/** The least rights that an exit plan needs, as a ClusterRole: to read, and to apply. */
export function exitPlanRole({
  apply,
  recreate,
}: {
  readonly apply: boolean
  readonly recreate: boolean
}): object {
  const change = apply ? ['patch'] : []
  const replace = apply && recreate ? ['create', 'delete'] : []
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'nodehub-exit-plan' },
    rules: [
      rule('', ['nodes', 'namespaces'], ['list']),
      // Created: pods that the API server only tries; deleted: those of a StatefulSet taken back.
      rule('', ['pods'], ['get', 'list', ...(apply ? ['create', 'delete'] : [])]),
      rule('', ['replicationcontrollers'], ['get']),
      rule('apps.openyurt.io', ['nodepools'], ['list']),
      rule('policy', ['poddisruptionbudgets'], ['list']),
      rule('apps', ['replicasets'], ['get']),
      rule('apps', ['deployments', 'statefulsets'], ['get', 'list', ...change]),
      rule('apps', ['daemonsets'], ['get', ...change]),
      rule('batch', ['cronjobs'], ['get', ...change]),
      rule('batch', ['jobs'], ['get', ...replace]),
      rule('apps.openyurt.io', ['yurtappsets', 'yurtappdaemons'], ['get', ...change]),
    ],
  }
}
