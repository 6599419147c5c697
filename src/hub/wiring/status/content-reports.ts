import { qualifiedResource } from '../../../api/kube/gvk.ts'
import { pods } from '../../../api/kube/resources.ts'
import type { Inputs } from '../../filter/inputs.ts'
import type { HostNetworkReport, PodOnNode } from '../../filter/host-network/report.ts'
import { objectReport, type ObjectReport, type ObjectReportParts } from './object-report.ts'

/** A pod as it is stored and shown, and its network. */
export interface PodReport extends ObjectReport {
  /** `unknown`: the hub is stopped. */
  readonly mode: Inputs['propagation'] | 'unknown'
  /** Absent: the kubelet of this node has not listed the pod. */
  readonly network?: PodOnNode
}

interface ContentReportParts extends ObjectReportParts {
  readonly hostNetwork: {
    report(): Promise<Pick<HostNetworkReport, 'pods'> & Pick<PodReport, 'mode'>>
  }
}

/** The reports with content of API objects, by name: root alone may read them. */
export const contentReports = (
  parts: ContentReportParts,
): {
  get(query: URLSearchParams): Promise<ObjectReport | undefined>
  pod(query: URLSearchParams): Promise<PodReport | undefined>
} => ({
  get: async (query) => {
    const [kind = '', namespace = '', name = ''] = ['kind', 'namespace', 'name'].map(
      (each) => query.get(each) ?? '',
    )
    return objectReport({ kind, namespace, name }, parts)
  },
  pod: (query) => podReport(query.get('namespace') ?? '', query.get('name') ?? '', parts),
})

async function podReport(
  namespace: string,
  name: string,
  parts: ContentReportParts,
): Promise<PodReport | undefined> {
  const report = await objectReport({ kind: qualifiedResource(pods), namespace, name }, parts)
  if (!report) return undefined
  const { mode, pods: onNode = [] } = await parts.hostNetwork.report()
  const network = onNode.find((each) => each.namespace === namespace && each.name === name)
  return { ...report, mode, ...(network && { network }) }
}
