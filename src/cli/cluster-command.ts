import type { ApiServer } from '../cluster/api/api-server.ts'
import {
  readClientConfig,
  readClusterConfig,
  readExitPlanConfig,
  type ClusterClientConfig,
  type ClusterConfig,
  type ClusterResult,
} from '../config/cluster-config.ts'
import {
  checkOptions,
  clusterOptions,
  exitPlanOptions,
  giveBackOptions,
} from '../config/cluster-options.ts'
import { didYouMean } from '../config/suggestion.ts'
import { processSources } from '../config/process.ts'
import type { OptionTable } from '../config/option.ts'
import { messageOf, type SettingSources } from '../config/settings.ts'
import { hardenProcess } from './hardened-process.ts'
import { refuse, type Command, type ExitCode, type Terminal } from './command.ts'
import { closingMs, endProcess, killLater } from './end-process.ts'
import { createLog, standardError } from './log.ts'
import { StopRequests } from './supervise.ts'
import { withApi } from './with-api.ts'

const fromEnvironment = `Each flag can also be given as an environment variable (NODEHUB_NAMESPACE for --namespace).
`

interface Subcommand<Config extends ClusterClientConfig> {
  /** With words before the flags, as help texts have them. */
  readonly typed: string
  readonly description: string
  readonly flags: OptionTable
  readonly read: (sources: SettingSources) => ClusterResult<Config>
  readonly act: (api: ApiServer, config: Config, terminal: Terminal) => Promise<ExitCode>
}

function subcommand<Config extends ClusterClientConfig>(one: Subcommand<Config>): Command {
  const { typed, description, flags, read, act } = one
  const command = `cluster ${typed.split(' ')[0]}`
  return {
    usage: `cluster ${typed} [FLAG...]`,
    description,
    flags,
    afterFlags: fromEnvironment,
    run([, ...argv], terminal) {
      const result = read(processSources(argv))
      if ('mistakes' in result) return Promise.resolve(refuse(terminal, command, result.mistakes))
      for (const note of result.notes) terminal.err(`note: ${note}\n`)
      return withApi(result.config, { command, terminal }, (api) =>
        act(api, result.config, terminal),
      )
    },
  }
}

/** Subcommands of `nodehub cluster`. */
const subcommands: Readonly<Record<string, Command>> = {
  check: subcommand({
    typed: 'check',
    description: `Says which parts of the pod network would stand on host-network nodes, with the command that keeps
each off, which nodes are not as their pool wants them, and which excluded pods slipped in. It
changes nothing. Exit code 1 where something is left to be done.
`,
    flags: checkOptions,
    read: (sources) => readClientConfig(sources, checkOptions),
    act: async (api, _config, terminal) => {
      const { checkCluster } = await import('./cluster-check.ts')
      return checkCluster(api, terminal)
    },
  }),
  'exit-plan': subcommand({
    typed: 'exit-plan [-o table|yaml|json]',
    description: `Finds the pods that a filter has put on the host's network, and prints for each owner the patch with
which they live on without the filter. It changes nothing. Exit code 1 where pods are left that need the filter.
`,
    flags: exitPlanOptions,
    read: readExitPlanConfig,
    act: async (api, config, terminal) => {
      const { exitPlan } = await import('./exit-plan.ts')
      return exitPlan(api, config, terminal)
    },
  }),
  'give-back': subcommand({
    typed: 'give-back',
    description: `Rolls nodehub cluster --take-over back, when no replica runs any more: yurt-manager has again what
was taken from it.
`,
    flags: giveBackOptions,
    read: (sources) => readClientConfig(sources, giveBackOptions),
    act: async (api, { namespace }, terminal) => {
      const { giveBack } = await import('../cluster/take-over.ts')
      const lines = await giveBack(api, namespace)
      for (const line of lines) terminal.out(`rolled back: ${line}\n`)
      if (lines.length === 0) terminal.out('nothing had been taken over\n')
      return 0
    },
  }),
}

/** `nodehub cluster`, or its subcommand that `argv` names. */
export const clusterOf = ([word]: readonly string[]): Command =>
  (word !== undefined && Object.hasOwn(subcommands, word) ? subcommands[word] : undefined) ??
  (word === 'upgrade' ? { ...cluster, description: `${upgradeIsGone}\n`, flags: {} } : cluster)

const cluster: Command = {
  usage: 'cluster [FLAG...]\ncluster check|exit-plan|give-back [FLAG...]',
  description: `Runs admission for NodePools, nodes and pods in every replica, and the controller of NodePools in
the leader. Run two or more replicas, once per cluster; nodehub manifests --part cluster prints the
objects. Beside a yurt-manager it does not start without --take-over, which prints and records what
it takes over. SIGTERM or SIGINT stops it gracefully, a second one at once.

Each subcommand has its own help: nodehub cluster check --help.
`,
  flags: clusterOptions,
  afterFlags: fromEnvironment,
  subcommands: Object.keys(subcommands),
  async run([word, ...rest], terminal) {
    if (word === 'upgrade') return refuse(terminal, 'cluster', [upgradeIsGone])
    if (word !== undefined && !word.startsWith('-'))
      return refuse(terminal, 'cluster', [
        `${JSON.stringify(word)} is no command of the cluster's side${didYouMean(word, Object.keys(subcommands))}`,
      ])
    return runCluster(word === undefined ? [] : [word, ...rest], terminal)
  },
}

const upgradeIsGone =
  'there is no nodehub cluster upgrade any more: give the DaemonSet nodehub-install or nodehub-adopt the image, and Kubernetes rolls it out (docs/upgrade.md)'

async function runCluster(argv: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const result = readClusterConfig(processSources(argv))
  if ('mistakes' in result) return refuse(terminal, 'cluster', result.mistakes)
  const sink = standardError()
  const log = createLog(result.config.logLevel, sink)
  hardenProcess(log)
  for (const note of result.notes) log.warn(note)
  const exit = (code: ExitCode): Promise<never> => endProcess(code, sink)
  // Forced: a stopped replica must exit, even if a library holds handles.
  return exit(await clusterUntilStopped(result.config, { terminal, log, exit }))
}

interface ClusterSurroundings {
  readonly terminal: Terminal
  readonly log: ReturnType<typeof createLog>
  readonly exit: (code: ExitCode) => Promise<never>
}

async function clusterUntilStopped(
  config: ClusterConfig,
  { terminal, log, exit }: ClusterSurroundings,
): Promise<ExitCode> {
  // Loads a client library that no other command needs.
  const { startCluster, YurtManagerPresent } = await import('../cluster/cluster.ts')
  const patienceMs = config.shutdownGracePeriodMs + closingMs
  using requests = new StopRequests(
    { log, signals: process, exit: (code) => void exit(code), killLater },
    () => patienceMs,
  )
  try {
    const starting = startCluster(config, {
      log,
      onTaken: (line) => terminal.out(`taken over from yurt-manager: ${line}\n`),
    })
    // Stopped before it serves: there is nothing to drain.
    const running = await Promise.race([starting, requests.stop])
    if (typeof running === 'string') return 0
    const { webhookPort, opsPort } = running
    log.info({ webhookPort, opsPort }, 'nodehub serves the cluster')
    log.info({ signal: await requests.stop }, 'stopping')
    await running[Symbol.asyncDispose]()
    return 0
  } catch (error) {
    if (error instanceof YurtManagerPresent) {
      const list = error.conflicts.map((line) => `  ${line}\n`).join('')
      terminal.err(
        `nodehub cluster: ${error.message}, and two would overwrite each other's work:\n${list}` +
          'With --take-over these are taken from it, and nodehub cluster give-back rolls that back.\n',
      )
      return 1
    }
    terminal.err(`nodehub cluster: it could not be started: ${messageOf(error)}\n`)
    return 1
  }
}
