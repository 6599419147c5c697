import { count, nameOrDefault } from './cells.ts'
import { column, nameColumn, textOr, type Column } from './column.ts'
import { statusBeforeFailures } from './pods.ts'
import { jobStatus } from './workloads.ts'

type Columns = readonly Column[]

/** The minor version of Kubernetes before which a resource had other columns, and which. */
type Change = readonly [before: number, earlier: (columns: Columns) => Columns]

const withCell =
  (name: string, cell: Column['cell']) =>
  (columns: Columns): Columns =>
    columns.map((each) => (each.name === name ? { ...each, cell } : each))

const name = textOr('', 'metadata', 'name')

/** By resource, from diffs of kubernetes pkg/printers/internalversion/printers.go. */
const changes: Readonly<Record<string, readonly Change[]>> = {
  nodes: [
    [36, withCell('Kernel-Version', textOr('<unknown>', 'status', 'nodeInfo', 'kernelVersion'))],
  ],
  'ingressclasses.networking.k8s.io': [[36, withCell('Name', name)]],
  pods: [[35, withCell('Status', statusBeforeFailures)]],
  serviceaccounts: [
    [35, ([first, ...rest]) => [first ?? nameColumn, column('Secrets', count('secrets')), ...rest]],
  ],
  'jobs.batch': [
    [
      34,
      withCell('Status', (job) => {
        const status = jobStatus(job)
        return status === 'SuccessCriteriaMet' ? 'Running' : status
      }),
    ],
  ],
  'volumeattributesclasses.storage.k8s.io': [
    [
      34,
      withCell('Name', nameOrDefault('volumeattributesclass.alpha.kubernetes.io/is-default-class')),
    ],
  ],
  resourcequotas: [
    [33, ([first, ...rest]) => [first ?? nameColumn, ...rest.slice(-1), ...rest.slice(0, -1)]],
  ],
  'priorityclasses.scheduling.k8s.io': [
    [32, (columns) => columns.filter((each) => each.name !== 'PreemptionPolicy')],
  ],
}

/** The columns of a resource in an API server of Kubernetes 1.`minor`. */
export const columnsIn = (minor: number, resource: string, newest: Columns): Columns =>
  (changes[resource] ?? [])
    .filter(([before]) => minor < before)
    .reduce((columns, [, earlier]) => earlier(columns), newest)
