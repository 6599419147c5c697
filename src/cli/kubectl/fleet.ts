import { now } from '../../base/clock.ts'
import { nodes, pathOf } from '../../api/kube/resources.ts'
import type { ApiServer } from '../../cluster/api/api-server.ts'
import { aligned } from '../aligned.ts'
import { paragraphs } from '../inspect/printed.ts'
import {
  ageText,
  isWrong,
  none,
  onlineText,
  rankOf,
  readyText,
  stateOf,
  type NodeState,
} from './node-state.ts'

/** Every node that `selector` takes, the worst first, read in pages. */
export async function fleetOf(api: ApiServer, selector: string): Promise<readonly NodeState[]> {
  const states: NodeState[] = []
  const query: Record<string, string> = selector === '' ? {} : { labelSelector: selector }
  for await (const node of api.list(pathOf(nodes), query)) states.push(stateOf(node, now()))
  return states.toSorted(
    (one, other) => rankOf(one) - rankOf(other) || (one.name < other.name ? -1 : 1),
  )
}

/** A row for each node, and a summary of all. */
export function fleetTable(states: readonly NodeState[], withHead: boolean): string {
  const rows = states.map((state) => [
    state.name,
    onlineText(state),
    ageText(state),
    state.version ?? none,
    readyText(state),
    state.failing.join('; ') || '-',
  ])
  const head = ['NAME', 'ONLINE', 'AGE', 'VERSION', 'OFFLINE-READY', 'FAILING']
  return withSummary(aligned(head, rows), states, withHead)
}

/** Without its head a table has no summary either: a program counts lines. */
const withSummary = (table: string, of: readonly NodeState[], withHead: boolean): string =>
  withHead ? paragraphs(table, summaryOf(of)) : table.slice(table.indexOf('\n') + 1)

function summaryOf(states: readonly NodeState[]): string {
  const count = (is: (state: NodeState) => boolean): number => states.filter(is).length
  const parts = [
    [count(({ online }) => online === false), 'offline'],
    [count((state) => rankOf(state) === 2), 'with failing checks'],
    [count(({ offlineReady }) => offlineReady === false), 'would not come back without a link'],
    [count(({ reportedAt }) => reportedAt === null), 'without a report'],
  ] as const
  const said = parts.filter(([number]) => number > 0).map(([number, what]) => `${number} ${what}`)
  const all = `${states.length} ${states.length === 1 ? 'node' : 'nodes'}`
  return `${all}${said.length === 0 && states.length > 0 ? ', all online and well' : ''}${said.length > 0 ? `: ${said.join(', ')}` : ''}\n`
}

/** How many nodes run each release, and which checks fail where. */
export function statusTable(states: readonly NodeState[], withHead: boolean): string {
  const versions = [...Map.groupBy(states, ({ version }) => version ?? none)]
  const rows = versions
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([version, of]) => [
      version,
      String(of.length),
      String(of.filter(({ online }) => online === true).length),
      String(of.filter(({ offlineReady }) => offlineReady === true).length),
      String(of.filter(isWrong).length),
    ])
  const head = ['VERSION', 'NODES', 'ONLINE', 'OFFLINE-READY', 'WRONG']
  return withSummary(aligned(head, rows), states, withHead)
}

/** Of one node, all that is known. */
export function nodeText(state: NodeState): string {
  const { name, since, version, reportedAt, failing } = state
  const lines = [
    ['Name:', name],
    ['Online:', since === null ? onlineText(state) : `${onlineText(state)}, for ${ageText(state)}`],
    ['Version:', version ?? none],
    ['Offline-ready:', readyText(state)],
    ['Last report:', reportedAt ?? none],
    ['Failing:', failing[0] ?? '-'],
    ...failing.slice(1).map((each) => ['', each]),
  ]
  return lines.map(([label = '', text = '']) => `${label.padEnd(16)}${text}\n`).join('')
}
