import type { ApiClient, KubeObject } from '../kit/cluster/api-client.ts'
import { until } from '../kit/until.ts'

/** Resolves when the API says that the node is Ready. */
export function nodeReady(api: ApiClient, name: string): Promise<KubeObject> {
  return objectThat(api, `/api/v1/nodes/${name}`, ({ status }) =>
    status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True'),
  )
}

/** Resolves when the kubelet has renewed the lease of its Node once more. */
export async function leaseRenewed(api: ApiClient, node: string): Promise<void> {
  const lease = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}`
  const { resourceVersion } = (await api.get(lease)).json().metadata
  await objectThat(api, lease, ({ metadata }) => metadata.resourceVersion !== resourceVersion)
}

/** Resolves when the API says that the pod runs and its containers are ready. */
export function podRunning(api: ApiClient, name: string): Promise<KubeObject> {
  return objectThat(
    api,
    `/api/v1/namespaces/default/pods/${name}`,
    ({ status }) =>
      status?.phase === 'Running' && status.containerStatuses?.every(({ ready }) => ready),
  )
}

/**
 * The container id of a one-container pod, as the runtime names it: the API says `containerd://`
 * before it.
 */
export const containerId = (pod: KubeObject): string | undefined =>
  pod.status?.containerStatuses?.[0]?.containerID?.replace(/^containerd:\/\//, '')

/** Resolves when what is at a path is as wanted. */
export async function objectThat(
  api: ApiClient,
  path: string,
  holds: (object: KubeObject) => boolean | undefined,
): Promise<KubeObject> {
  let last: KubeObject | undefined
  return until(
    `${path} to be as wanted`,
    async () => {
      last = (await api.get(path)).json()
      return holds(last) === true && last
    },
    { seconds: 90, describe: () => last?.status },
  )
}
