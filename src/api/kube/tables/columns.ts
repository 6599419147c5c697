import { qualifiedResource, type GVR } from '../gvk.ts'
import { clusterColumns } from './cluster.ts'
import type { Column } from './column.ts'
import { coreColumns } from './core.ts'
import { networkingColumns } from './networking.ts'
import { columnsIn } from './older.ts'
import { podColumns } from './pods.ts'
import { storageColumns } from './storage.ts'
import { workloadColumns } from './workloads.ts'

export type { Column } from './column.ts'

/**
 * As kubernetes pkg/printers/internalversion/printers.go shows each resource, `kubectl get -o wide`
 * included.
 */
const builtinColumns = new Map<string, readonly Column[]>(
  Object.entries({
    pods: podColumns,
    ...coreColumns,
    ...workloadColumns,
    ...networkingColumns,
    ...storageColumns,
    ...clusterColumns,
  }),
)

/**
 * The columns of a built-in resource in an API server of Kubernetes 1.`minor`, by default of the
 * newest version that the hub knows; `undefined` for resources without any of their own.
 */
export function columnsOfBuiltin(gvr: GVR, minor = Infinity): readonly Column[] | undefined {
  const resource = qualifiedResource(gvr)
  const newest = builtinColumns.get(resource)
  return newest && columnsIn(minor, resource, newest)
}
