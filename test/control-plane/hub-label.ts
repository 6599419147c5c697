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
