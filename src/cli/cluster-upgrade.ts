import { keepProcessAlive } from '../base/clock.ts'
import type { ApiServer } from '../cluster/api/api-server.ts'
import { applyUpgrade, finishTakingBack } from '../cluster/upgrade/apply.ts'
import { readFleet, readInstallers } from '../cluster/upgrade/fleet.ts'
import { listed, planUpgrade, type UpgradePlan } from '../cluster/upgrade/plan.ts'
import type { UpgradeConfig } from '../config/cluster-config.ts'
import type { ExitCode, Terminal } from './command.ts'

/**
 * Prints the waves in which a fleet gets a release, and takes it there unless only the plan is
 * wanted. Exit code 0: all nodes have it, and pass.
 */
export async function upgradeFleet(
  api: ApiServer,
  config: UpgradeConfig,
  terminal: Terminal,
): Promise<ExitCode> {
  // Nothing else keeps the process alive between two looks at the fleet.
  using _staying = keepProcessAlive()
  const { image, version } = config
  const say = (line: string): void => terminal.out(`${line}\n`)
  const installers = await readInstallers(api, config.daemonSet)
  const { state } = installers
  if (state?.phase === 'taking back' && !config.dryRun) {
    say(`an upgrade to ${state.image} was broken off while a wave was taken back`)
    await finishTakingBack(api, state, { ...config, say })
    say('run it again to try once more')
    return 1
  }
  if (state?.phase === 'upgrading' && state.image !== image) {
    terminal.err(
      `nodehub cluster upgrade: an upgrade to ${state.image} is under way: continue it with --image=${state.image}, or go back with --image=${state.from} --replace\n`,
    )
    if (!config.replace) return 1
  }
  const plan = planUpgrade(await readFleet(api, installers), { image, version }, config)
  terminal.out(textOf(plan, config))
  if (!plan.cache.kept) {
    terminal.err(
      'nodehub cluster upgrade: nothing was changed: empty these caches by hand (docs/upgrade-a-fleet.md)\n',
    )
    return 1
  }
  if (config.dryRun) return plan.waves.length + plan.later.length === 0 ? 0 : 1
  if (plan.waves.length > 0) {
    const passed = await applyUpgrade(api, plan, { image, version }, { ...config, say })
    if (!passed) return 1
  }
  if (plan.later.length === 0) {
    say(`all nodes have ${image}`)
    return 0
  }
  say(`left for later: ${listed(plan.later.map(({ node }) => node))}; run it again`)
  return 1
}

function textOf(plan: UpgradePlan, { image, version }: UpgradeConfig): string {
  const lines = [
    `to ${image} (${version}); caches are ${plan.cache.text}`,
    ...plan.waves.map((names, at) => `wave ${at + 1}: ${names.length} (${listed(names)})`),
    ...(plan.done.length > 0 ? [`done: ${plan.done.length} (${listed(plan.done)})`] : []),
    ...plan.later.map(({ node, why }) => `later: ${node} ${why}`),
  ]
  return `${lines.join('\n')}\n`
}
