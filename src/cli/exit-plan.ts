import type { ApiServer } from '../cluster/api/api-server.ts'
import { readClusterState } from '../cluster/exit-plan/cluster-state.ts'
import { ownerName, ownersOf, printable } from '../cluster/exit-plan/owner.ts'
import { planOf, type Step } from '../cluster/exit-plan/plan.ts'
import type { ExitPlanConfig } from '../config/cluster-config.ts'
import { aligned } from './aligned.ts'
import type { ExitCode, Terminal } from './command.ts'
import { printed } from './inspect/printed.ts'

/** Prints the way out of propagation. Exit code 0: no pod needs the filter any more. */
export async function exitPlan(
  api: ApiServer,
  config: ExitPlanConfig,
  terminal: Terminal,
): Promise<ExitCode> {
  const state = await readClusterState(api)
  const steps = planOf(state, await ownersOf(api, state.pods), config.keepOff)
  terminal.out(printed(reportOf(steps), config.output, () => tableOf(steps)))
  return steps.length === 0 ? 0 : 1
}

/** The plan begins with pods. */
const unseen =
  'the plan misses owners without a propagated pod now (0 replicas, a CronJob without Jobs): run `nodehub lint` on them first'

/** The plan for programs: `kubectl patch` takes `patch.type` and `patch.body`. */
const reportOf = (steps: readonly Step[]) => ({
  owners: steps.map(({ owner, action, intent, propagated, patch, ...rest }) => ({
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    namespace: owner.namespace,
    name: owner.name,
    action,
    intent,
    pods: owner.pods.length,
    propagated,
    ...(owner.writer !== undefined && { writer: owner.writer }),
    ...(patch && { patch: { type: patch.type, body: patch.body } }),
    reasons: rest.reasons,
    notes: rest.notes,
  })),
})

function tableOf(steps: readonly Step[]): string {
  if (steps.length === 0)
    return `no pod needs the filter any more: switch it off on every hub (--host-network-propagation=off)\n${unseen}\n`
  const rows = steps.map(({ owner, action, propagated, intent }, at) => [
    String(at + 1),
    ownerName(owner),
    String(propagated),
    action,
    intent === 'keep-off' ? 'standard nodes' : 'host network',
  ])
  const head = ['', 'OWNER', 'PROPAGATED', 'ACTION', 'LIVES ON']
  return `${aligned(head, rows)}\n${steps.map(paragraphOf).join('\n')}`
}

function paragraphOf(step: Step, at: number): string {
  const { owner, action, reasons, notes, patch } = step
  const lines = [
    `${at + 1}. ${ownerName(owner)}: ${actionText[action]}`,
    ...reasons.map((reason) => `   left: ${printable(reason)}`),
    ...notes.map((note) => `   note: ${printable(note)}`),
    ...(patch ? [`   ${commandOf(step, patch)}`] : []),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

const actionText = {
  patch: 'to be patched',
  wait: 'patched already; old pods are left',
  leave: 'left to you',
} as const

/** The command that applies a patch. */
function commandOf({ owner }: Step, { type, body }: NonNullable<Step['patch']>): string {
  const [, group = '', resource = ''] =
    /^\/(?:api|apis\/([^/]+))\/[^/]+\/namespaces\/[^/]+\/([^/]+)\//.exec(owner.path ?? '') ?? []
  const kind = group === '' ? resource : `${resource}.${group}`
  const names = `-n ${quoted(owner.namespace)} ${quoted(`${kind}/${owner.name}`)}`
  return `kubectl patch ${names} --type=${type} -p ${quoted(JSON.stringify(body))}`
}

/** A word of a POSIX shell. */
export const quoted = (text: string): string =>
  /^[\w./-]+$/.test(text) ? text : `'${printable(text).replaceAll("'", "'\\''")}'`
