import { keepProcessAlive } from '../base/clock.ts'
import type { ApiServer } from '../cluster/api/api-server.ts'
import { apply, evict, revert, rolledOut } from '../cluster/components/change.ts'
import { survey, type Survey } from '../cluster/components/survey.ts'
import type { Component } from '../cluster/components/component.ts'
import type { CheckConfig } from '../config/cluster-config.ts'
import type { ExitCode, Terminal } from './command.ts'

const nameOf = ({ kind, namespace, name }: Component): string => `${kind} ${namespace}/${name}`

const isMeant = ({ only }: CheckConfig, { namespace, name }: Component): boolean =>
  only.length === 0 || only.includes(`${namespace}/${name}`)

/**
 * Reports which components of the pod network could run on host-network nodes, and other
 * differences from the pools; applies the requested action. Exit code 1 if something is left to do.
 */
export async function checkCluster(
  api: ApiServer,
  config: CheckConfig,
  terminal: Terminal,
): Promise<ExitCode> {
  // Nothing else keeps the process alive between two checks of a rollout.
  using _staying = keepProcessAlive()
  const found = await survey(api)
  for (const each of config.only)
    if (!found.components.some(({ namespace, name }) => `${namespace}/${name}` === each))
      terminal.err(`nodehub cluster check: there is no component ${each}\n`)
  const left =
    config.action === 'revert'
      ? await revertAll(api, config, found, terminal)
      : await checkAll(api, config, found, terminal)
  for (const { node, remark } of found.nodes) terminal.out(`node ${node}: ${remark}\n`)
  const slipped = await excluded(api, config, found, terminal)
  return left + found.nodes.length + slipped > 0 ? 1 : 0
}

/** Returns how many components could still run on host-network nodes. */
async function checkAll(
  api: ApiServer,
  config: CheckConfig,
  { components }: Survey,
  terminal: Terminal,
): Promise<number> {
  if (components.length === 0) terminal.out('no known component of a pod network was found\n')
  let left = 0
  let stopped = false
  for (const component of components) {
    const { placement, owner, what } = component
    for (const label of placement.oldLabels)
      terminal.out(`${nameOf(component)}: ${label} is without effect: no node carries it\n`)
    if (placement.keptOff) {
      terminal.out(`${nameOf(component)} (${what}): kept off host-network nodes\n`)
      continue
    }
    terminal.out(
      `${nameOf(component)} (${what}): not kept off host-network nodes; ${rolling(component)}\n`,
    )
    if (owner)
      terminal.out(
        `  ${owner.name} writes it${owner.reverts ? ', and would take a change back' : ', and takes a change back when it is upgraded'}; say it ${owner.setting}\n`,
      )
    left++
    if (config.action !== 'apply' || !isMeant(config, component)) continue
    if (owner && config.only.length === 0) {
      terminal.out(`  left to ${owner.name}; --only changes it all the same\n`)
    } else if (stopped) terminal.out('  left: an earlier change has not settled\n')
    else if (await changed(api, config, component, terminal)) left--
    else stopped = true
  }
  return left
}

const rolling = ({ rolls, onDelete, kind }: Component): string =>
  onDelete
    ? 'a change takes effect as its pods are deleted'
    : `a change replaces ${rolls} ${rolls === 1 ? 'pod' : 'pods'}${kind === 'DaemonSet' ? ', one a node' : ''}`

/** Whether the component is as it should be now. */
async function changed(
  api: ApiServer,
  config: CheckConfig,
  component: Component,
  terminal: Terminal,
): Promise<boolean> {
  if ((await apply(api, component)) === 'nothing to change') {
    terminal.out('  nothing could be changed about its affinity\n')
    return true
  }
  const done = await rolledOut(api, component, config.settleMs)
  terminal.out(
    done
      ? '  changed, and its pods have settled\n'
      : '  changed, but its pods have not settled in time: see its rollout, and check again\n',
  )
  return done
}

/** Returns how many components were not reverted. */
async function revertAll(
  api: ApiServer,
  config: CheckConfig,
  { components }: Survey,
  terminal: Terminal,
): Promise<number> {
  let left = 0
  for (const component of components.filter((each) => isMeant(config, each))) {
    const outcome = await revert(api, component)
    if (outcome === 'nothing to take back') continue
    if (outcome !== 'changed') {
      terminal.out(`${nameOf(component)}: left as it is: ${outcome}\n`)
      left++
      continue
    }
    const done = await rolledOut(api, component, config.settleMs)
    terminal.out(
      `${nameOf(component)}: has the affinity that it had before${done ? '' : '; its pods have not settled in time'}\n`,
    )
    if (done) continue
    left++
    break
  }
  return left
}

/** Returns how many excluded pods are left on host-network nodes. */
async function excluded(
  api: ApiServer,
  config: CheckConfig,
  { slippedIn }: Survey,
  terminal: Terminal,
): Promise<number> {
  let left = slippedIn.length
  for (const pod of slippedIn) {
    const what = `pod ${pod.namespace}/${pod.name}`
    if (!config.evict) {
      terminal.out(`${what}: excluded from host-network pools, but on ${pod.node}\n`)
      continue
    }
    const outcome = await evict(api, pod)
    if (!outcome.startsWith('not')) left--
    terminal.out(`${what} on ${pod.node}: ${outcome}\n`)
  }
  return left
}
