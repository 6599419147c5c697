import { hostname } from 'node:os'
import { unlessAborted } from '../base/abort.ts'
import { option, type Option, type ValuesOf } from '../config/option.ts'
import { messageOf } from '../config/settings.ts'
import { boolean, duration, listOf, optional, signerName, text } from '../config/value.ts'
import { Adoption, asideOf, type AdoptionRecord } from '../node/adopt/adoption-record.ts'
import { clusterView, isNodeReady } from '../node/adopt/cluster-view.ts'
import { controlOf } from '../node/adopt/node-control.ts'
import {
  CannotAdopt,
  planAdoption,
  type AdoptionPlan,
  type AdoptionSettings,
} from '../node/adopt/plan.ts'
import { rollBack, swapIn, type NodeControl } from '../node/adopt/swap.ts'
import { NodeFiles } from '../node/join/node-files.ts'
import { lockNode } from '../node/join/node-lock.ts'
import { membershipOf, propagatedPods, type ApiClient } from '../node/join/pool-membership.ts'
import { JoinArchive } from '../node/join/record.ts'
import { whyNoService } from '../node/join/runnable.ts'
import { changeNode } from './change-node.ts'
import { flagCommand } from './command-flags.ts'
import type { ExitCode, Terminal } from './command.ts'
import {
  applyFlag,
  hubImageFlag,
  manifestFolderFlag,
  missingRoot,
  mountedPath,
  nodePathFlags,
  offlineReadyFlag,
} from './join-flags.ts'
import { printChanges } from './printed-changes.ts'
import { stopSignals } from './stop-signals.ts'

export const adoptFlags = {
  'dry-run': option({
    type: boolean,
    help: 'Change nothing, and print the plan.',
  }),
  rollback: option({
    type: boolean,
    help: "Roll an adoption back: yurthub runs again in the hub's place, with its former files. Also where an adoption was interrupted.",
  }),
  timeout: option({
    type: duration,
    default: 300_000,
    defaultShown: '5m',
    help: 'How long the hub and the Node may take to be ready. After that the adoption is rolled back.',
  }),
  'drop-flags': option({
    type: listOf(text('NAME')),
    help: 'Names of flags of yurthub that are left out: without it adopt refuses those that the hub does not know.',
  }),
  image: hubImageFlag,
  systemd: option({
    type: optional(boolean),
    defaultShown: 'as yurthub is run',
    help: 'Have systemd run the hub, in place of a static pod.',
  }),
  kubeconfig: option({
    type: mountedPath,
    defaultShown: "the kubelet's own certificate, else yurthub's",
    help: "The hub's credentials, under /etc/kubernetes.",
  }),
  'hub-cert-signer': option({
    type: signerName,
    defaultShown: 'none',
    help: 'The signer of the certificate that pods trust, such as kubernetes.io/kubelet-serving (docs/ports-and-pod-access.md).',
  }),
  'offline-ready-condition': offlineReadyFlag,
  'manifest-dir': manifestFolderFlag,
  'root-dir': nodePathFlags['root-dir'],
  apply: applyFlag,
  root: option({
    type: text('FOLDER'),
    default: '/',
    help: "Where the node's root is, in a container on the network of the node. Not for systemd.",
  }),
}

type Values = ValuesOf<typeof adoptFlags>

/** Those that a DaemonSet passes on; the others are its own, or take the node's systemd. */
export const passedFlags = {
  timeout: passed(adoptFlags.timeout),
  'drop-flags': passed(adoptFlags['drop-flags']),
  kubeconfig: passed(adoptFlags.kubeconfig),
  'hub-cert-signer': passed(adoptFlags['hub-cert-signer']),
}

function passed<T>(flag: Option<T>): Option<T> {
  return { ...flag, help: `For --adopt. ${flag.help}` }
}

/** Puts the hub in the place of a node's yurthub, and yurthub back. */
export const adopt = flagCommand({
  usage: 'adopt [--dry-run | --rollback] [FLAG...]',
  description: `Reads how this node starts its yurthub, and replaces yurthub with the hub: same ports, equivalent
flags. The kubelet is not restarted, and keeps its kubeconfig and its pods. If the hub or the Node
is not ready in time, adopt rolls back: yurthub runs again with its former files. --dry-run prints
the hub's flags and the files that would change. docs/migrate-from-yurthub.md explains each step.

One command changes a node at a time. After an interruption at any point adopt goes on, and
--rollback rolls back. At SIGTERM or Ctrl-C adopt rolls back at once, and --rollback finishes
without waiting any longer.

Exit codes: 0, planned or done; 1, it could not, and says why; 2, invalid arguments.
`,
  flags: adoptFlags,
  wrong: ({ values }) => [
    ...missingRoot(values),
    ...(values['dry-run'] && values.rollback ? ['--dry-run and --rollback: give one of them'] : []),
  ],
  async act({ values }, terminal) {
    using stop = stopSignals()
    const ending = (): string => 'Nothing was changed.'
    return await changeNode({ command: 'adopt', values, terminal, lock: lockNode, ending }, () =>
      adoptOrThrow(values, terminal, stop.signal),
    )
  },
})

/**
 * Carries out `adopt` for a caller that has the lock of the node. Throws where nothing was changed.
 */
export async function adoptOrThrow(
  values: Values,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<ExitCode> {
  const files = new NodeFiles(values.root)
  const act = values.rollback ? rolledBack : adopted
  return act(files, values, terminal, signal)
}

async function adopted(
  files: NodeFiles,
  values: Values,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<ExitCode> {
  const settings: AdoptionSettings = {
    root: values.root,
    rootDir: values['root-dir'],
    manifestFolder: values['manifest-dir'],
    image: values.image,
    systemd: values.systemd,
    kubeconfig: values.kubeconfig,
    hubCertSigner: values['hub-cert-signer'],
    reports: values['offline-ready-condition'],
    dropped: values['drop-flags'].map((name) => name.replace(/^--/, '').replaceAll('_', '-')),
    hostname: hostname(),
    more: [],
  }
  const first = planAdoption(files, settings)
  const cluster = clusterView(first.flags.serverAddresses, first.credentials)
  const found = await unlessAborted(lookUp(cluster, first), signal)
  if (found === undefined) throw signal.reason
  const plan =
    found.more.length > 0 ? planAdoption(files, { ...settings, more: found.more }) : first
  const obstacles = [...found.obstacles, ...(await supervisorObstacles(files, values, plan))]
  signal.throwIfAborted()
  printPlan(terminal, plan)
  for (const note of [...plan.notes, ...found.notes]) terminal.err(`note: ${note}\n`)
  if (values['dry-run']) {
    for (const obstacle of obstacles) terminal.err(`note: adopt would refuse: ${obstacle}\n`)
    terminal.out('Nothing was changed: without --dry-run adopt does this.\n')
    return 0
  }
  if (obstacles.length > 0) throw new CannotAdopt(obstacles)
  const { rootDir } = settings
  const control = controlOf({
    files,
    rootDir,
    runBy: plan.record.runBy,
    isUnit: plan.isUnit,
    ports: plan.record.ports,
    nodeName: plan.nodeName,
    cluster,
    timeoutMs: values.timeout,
  })
  try {
    await swapIn(files, rootDir, plan, control, signal)
    terminal.out(
      `The hub has taken yurthub's place, and Node ${plan.nodeName} is Ready. To roll back: nodehub adopt --rollback\n`,
    )
    return 0
  } catch (cause) {
    terminal.err(`nodehub adopt: ${messageOf(cause)}\n`)
    terminal.err('Rolling back.\n')
    await putBack(files, plan.record, control, values, { terminal, signal })
    return 1
  }
}

async function rolledBack(
  files: NodeFiles,
  values: Values,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<ExitCode> {
  const rootDir = values['root-dir']
  const record = new Adoption(files, rootDir).read()
  if (record === undefined) {
    terminal.out('The node is not adopted: there is nothing to roll back.\n')
    return 0
  }
  if (new JoinArchive(files, rootDir).read() !== undefined)
    throw new CannotAdopt(['the node has joined since: nodehub leave first'])
  const isUnit = record.yurthub.endsWith('.service')
  if (values.root !== '/' && (isUnit || 'systemd' in record.runBy))
    throw new CannotAdopt([systemdElsewhere])
  const control = controlOf({
    files,
    rootDir,
    runBy: record.runBy,
    isUnit,
    ports: record.ports,
    nodeName: '',
    timeoutMs: values.timeout,
  })
  return (await putBack(files, record, control, values, { terminal, signal })) ? 0 : 1
}

/** Whether yurthub has been put back; if not, how to go on. */
async function putBack(
  files: NodeFiles,
  record: AdoptionRecord,
  control: NodeControl,
  { 'root-dir': rootDir }: Values,
  { terminal, signal }: { readonly terminal: Terminal; readonly signal: AbortSignal },
): Promise<boolean> {
  try {
    const notes = await rollBack(files, rootDir, record, control, signal)
    for (const note of notes) terminal.err(`note: ${note}\n`)
    terminal.out(
      `Rolled back: yurthub runs with its former files. The hub's state stays in ${rootDir}.\n`,
    )
    return true
  } catch (cause) {
    terminal.err(
      `nodehub adopt: not rolled back yet: ${messageOf(cause)}; nodehub adopt --rollback goes on from there\n`,
    )
    return false
  }
}

/** The cluster's state of this node: an adoption is for one that is online and Ready. */
async function lookUp(cluster: ApiClient, { nodeName, flags, isBegun }: AdoptionPlan) {
  const obstacles: string[] = []
  const notes: string[] = []
  /** Flags that the hub needs for the pods which run. */
  const more: string[] = []
  const found = { obstacles, notes, more }
  try {
    // After an interruption the Node may be without a hub.
    if (!(await isNodeReady(cluster, nodeName)) && !isBegun)
      obstacles.push(`Node ${nodeName} is not Ready now, before anything is changed`)
  } catch (cause) {
    obstacles.push(`whether Node ${nodeName} is Ready is not known: ${messageOf(cause)}`)
    return found
  }
  const membership = await membershipOf(cluster, nodeName)
  const mayPropagate =
    'hostNetwork' in membership &&
    membership.hostNetwork &&
    !flags.disabledFilters.some((name) => ['*', 'hostnetworkpropagation'].includes(name))
  if (!mayPropagate) return found
  const pods = await propagatedPods(cluster, nodeName)
  if ('failure' in pods) obstacles.push(pods.failure)
  else if (pods.length > 0) {
    notes.push(
      `pods run on the host network that only yurthub's filter put there: the hub goes on with it, or they would be torn down (docs/host-network.md): ${pods.join(', ')}`,
    )
    more.push('--host-network-propagation=on', '--plain-proxy=true')
  }
  return found
}

const systemdElsewhere = 'systemd of the node has to be called: run this without --root'

async function supervisorObstacles(
  files: NodeFiles,
  { root }: Values,
  { record, isUnit }: AdoptionPlan,
): Promise<readonly string[]> {
  const bySystemd = 'systemd' in record.runBy
  if (root !== '/' && (isUnit || bySystemd)) return [systemdElsewhere]
  const why = bySystemd ? await whyNoService(files, root) : undefined
  return why === undefined ? [] : [`${why}; or --systemd=false for a static pod`]
}

function printPlan(terminal: Terminal, plan: AdoptionPlan): void {
  const { flags, source, record, links, before, after, left, credentialsFrom } = plan
  terminal.out(`yurthub: ${source}\nflags:\n`)
  for (const { given, fate, reason } of flags.flags)
    terminal.out(`  ${fate.padEnd(7)} ${given}${reason === undefined ? '' : `: ${reason}`}\n`)
  terminal.out(`credentials: ${credentialsFrom}\nfiles:\n`)
  for (const path of record.aside) terminal.out(`  rename  ${path} -> ${asideOf(path)}\n`)
  for (const { path } of [...before, ...after]) terminal.out(`  write   ${path}\n`)
  for (const { path } of links) terminal.out(`  link    ${path}\n`)
  for (const path of left) terminal.out(`  leave   ${path}\n`)
  // Not those with keys.
  const shown = [...before, ...after].filter(({ path }) => !path.includes('/pki/'))
  printChanges(terminal, shown)
}
