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

/** The least rights that an exit plan needs, as a ClusterRole. */
export const exitPlanRole = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'nodehub-exit-plan' },
  rules: [
    rule('', ['nodes', 'namespaces'], ['list']),
    rule('', ['pods'], ['get', 'list']),
    rule('', ['replicationcontrollers'], ['get']),
    rule('apps', ['replicasets', 'deployments', 'statefulsets', 'daemonsets'], ['get']),
    rule('batch', ['cronjobs', 'jobs'], ['get']),
    rule('apps.openyurt.io', ['nodepools'], ['list']),
    rule('apps.openyurt.io', ['yurtappsets', 'yurtappdaemons'], ['get']),
  ],
}
