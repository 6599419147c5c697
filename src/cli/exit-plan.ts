import { stringify } from 'yaml'
import { keepProcessAlive } from '../base/clock.ts'
import type { ApiServer } from '../cluster/api/api-server.ts'
import { applyPlan } from '../cluster/exit-plan/apply.ts'
import { readClusterState } from '../cluster/exit-plan/cluster-state.ts'
import { ownerName, ownersOf, printable } from '../cluster/exit-plan/owner.ts'
import { planOf, type Step } from '../cluster/exit-plan/plan.ts'
import { exitPlanRole, isMissingRight } from '../cluster/exit-plan/rights.ts'
import type { ExitPlanConfig } from '../config/cluster-config.ts'
import { messageOf } from '../config/settings.ts'
import { aligned } from './aligned.ts'
import type { ExitCode, Terminal } from './command.ts'
import { printed } from './inspect/printed.ts'

/**
 * Prints the way out of propagation, and takes it with `--apply`. Exit code 0: no pod needs the
 * filter any more.
 */
export async function exitPlan(
  api: ApiServer,
  config: ExitPlanConfig,
  terminal: Terminal,
): Promise<ExitCode> {
  // Nothing else keeps the process alive between two checks of a rollout.
  using _staying = keepProcessAlive()
  try {
    const steps = await planned(api, config)
    terminal.out(printed(reportOf(steps), config.output, () => tableOf(steps, config)))
    if (!config.apply) return steps.length === 0 ? 0 : 1
    const say = (line: string): void =>
      config.output === 'table' ? terminal.out(`${line}\n`) : terminal.err(`${line}\n`)
    if (!(await applyPlan(api, steps, { settleMs: config.settleMs, say }))) return 1
    const left = await planned(api, config)
    say(
      left.length === 0
        ? `no pod needs the filter any more: switch it off on every hub (--host-network-propagation=off)\n${unseen}`
        : `left: ${left.map(({ owner }) => ownerName(owner)).join(', ')}`,
    )
    return left.length === 0 ? 0 : 1
  } catch (cause) {
    if (!isMissingRight(cause)) throw cause
    terminal.err(
      `nodehub cluster exit-plan: ${printable(messageOf(cause))}\nGrant this to its user, and run it again:\n${stringify(exitPlanRole(config))}`,
    )
    return 1
  }
}

/** The plan begins with pods. */
const unseen =
  'the plan misses owners without a propagated pod now (0 replicas, a CronJob without Jobs, refused pods): run `nodehub lint` on them first'

async function planned(api: ApiServer, config: ExitPlanConfig): Promise<readonly Step[]> {
  const state = await readClusterState(api)
  return planOf(state, await ownersOf(api, state.pods), config)
}

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
    ...(rest.manifest && { manifest: rest.manifest }),
    ...(rest.forecast && { forecast: rest.forecast }),
    reasons: rest.reasons,
    notes: rest.notes,
  })),
})

function tableOf(steps: readonly Step[], { apply }: ExitPlanConfig): string {
  if (steps.length === 0)
    return `no pod runs on the host network without requesting it\n${unseen}\n`
  const rows = steps.map(({ owner, action, propagated, intent, forecast }, at) => [
    String(at + 1),
    ownerName(owner),
    String(propagated),
    action,
    intent === 'keep-off' ? 'standard nodes' : 'host network',
    forecast ? `${forecast.wanted - forecast.pending} of ${forecast.wanted}` : '',
  ])
  const head = ['', 'OWNER', 'PROPAGATED', 'ACTION', 'LIVES ON', 'SCHEDULED']
  const todo = apply ? '' : '\nWith --apply this is done in this order.\n'
  return `${aligned(head, rows)}\n${steps.map(paragraphOf).join('\n')}${todo}`
}

function paragraphOf(step: Step, at: number): string {
  const { owner, action, reasons, notes, forecast, patch, manifest } = step
  const lines = [
    `${at + 1}. ${ownerName(owner)}: ${actionText[action]}`,
    ...reasons.map((reason) => `   left: ${printable(reason)}`),
    ...(forecast?.clashes ?? []).map((clash) => `   may clash: ${printable(clash)}`),
    ...notes.map((note) => `   note: ${printable(note)}`),
    ...(patch ? [`   ${commandOf(step, patch)}`] : []),
    ...(manifest ? [`   ${quoted(JSON.stringify(manifest))}`] : []),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

const actionText = {
  patch: 'to be patched',
  wait: 'patched already; old pods are left',
  recreate: 'to be deleted and created again',
  leave: 'not to be changed',
} as const

/** The command that does the same by hand. */
function commandOf({ owner }: Step, { type, body }: NonNullable<Step['patch']>): string {
  const [, group = '', resource = ''] =
    /^\/(?:api|apis\/([^/]+))\/[^/]+\/namespaces\/[^/]+\/([^/]+)\//.exec(owner.path ?? '') ?? []
  const kind = group === '' ? resource : `${resource}.${group}`
  const names = `-n ${quoted(owner.namespace)} ${quoted(`${kind}/${owner.name}`)}`
  return `kubectl patch ${names} --type=${type} -p ${quoted(JSON.stringify(body))}`
}

/** A word of a POSIX shell. */
const quoted = (text: string): string =>
  /^[\w./-]+$/.test(text) ? text : `'${printable(text).replaceAll("'", "'\\''")}'`
