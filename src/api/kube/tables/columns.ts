import { qualifiedResource, type GVR } from '../gvk.ts'
import type { Column } from './column.ts'
import { coreColumns } from './core.ts'
import { networkingColumns } from './networking.ts'
import { podColumns } from './pods.ts'
import { workloadColumns } from './workloads.ts'

export type { Column } from './column.ts'

/** As kubernetes pkg/printers/internalversion/printers.go, `kubectl get -o wide` included. */
const builtinColumns = new Map<string, readonly Column[]>(
  Object.entries({
    pods: podColumns,
    ...coreColumns,
    ...workloadColumns,
    ...networkingColumns,
  }),
)

/**
 * The columns of the built-in resources that a technician reads at a node, as the newest API server
 * that the hub knows has them; `undefined` for all others.
 */
export const columnsOfBuiltin = (gvr: GVR): readonly Column[] | undefined =>
  builtinColumns.get(qualifiedResource(gvr))
