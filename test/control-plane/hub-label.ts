import { installReportIn, type InstallReport } from '../../src/api/kube/install-report.ts'
import type { ApiClient } from '../kit/cluster/api-client.ts'
import { until } from '../kit/until.ts'

/** Labels the node for a DaemonSet of the hub, and waits until its Node says how that went. */
export async function labelForHub(
  api: ApiClient,
  node: string,
  wanted: string,
  state: InstallReport['state'],
): Promise<void> {
  const path = `/api/v1/nodes/${node}`
  const patch = JSON.stringify({ metadata: { labels: { 'nodehub.io/hub': wanted } } })
  await api.send('PATCH', path, patch, 'application/merge-patch+json')
  let last: InstallReport | undefined
  await until(
    `the Node to say ${state}`,
    async () => {
      last = installReportIn((await api.get(path)).json() as never)
      return last?.state === state
    },
    { seconds: 240, describe: () => last },
  )
}

interface DaemonSet {
  readonly metadata: { readonly generation?: number }
  readonly status: {
    readonly observedGeneration?: number
    readonly updatedNumberScheduled?: number
    readonly numberAvailable?: number
  }
}

/** Changes the DaemonSet of the hub on one node, and waits until that has rolled out. */
export async function rolledOut(api: ApiClient, name: string, changes: unknown): Promise<void> {
  const path = `/apis/apps/v1/namespaces/kube-system/daemonsets/${name}`
  const type = 'application/merge-patch+json'
  const { status, body } = await api.send('PATCH', path, JSON.stringify(changes), type)
  if (status !== 200) throw new Error(`${path}: ${status} ${body.toString()}`)
  await until(
    'the rollout to end',
    async () => {
      const { metadata, status } = (await api.get(path)).json() as never as DaemonSet
      return (
        status.observedGeneration === metadata.generation &&
        status.updatedNumberScheduled === 1 &&
        status.numberAvailable === 1
      )
    },
    { seconds: 240 },
  )
}
