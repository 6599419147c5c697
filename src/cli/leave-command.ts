import { former } from '../config/former-options.ts'
import { option, type ValuesOf } from '../config/option.ts'
import { messageOf } from '../config/settings.ts'
import { boolean } from '../config/value.ts'
import { Adoption } from '../node/adopt/adoption-record.ts'
import { ApiServer } from '../node/join/api-server.ts'
import { propagatedPods } from '../node/join/pool-membership.ts'
import { dropInFolder, flagsPath } from '../node/join/hub-files.ts'
import { dummyUnitPaths, removeDummy } from '../node/join/dummy-unit.ts'
import { howToChangeKind } from '../node/join/join.ts'
import { releasePorts, keptPortsFile } from '../node/join/kept-ports.ts'
import { restartKubelet, runLine } from '../node/join/kubelet-service.ts'
import { forgetJoin, planLeave, applyChanges } from '../node/join/leave.ts'
import { purgeState } from '../node/join/purge.ts'
import { NodeFiles } from '../node/join/node-files.ts'
import { lockNode, type NodeLocking } from '../node/join/node-lock.ts'
import { JoinArchive, type JoinRecord } from '../node/join/record.ts'
import { reloadUnits, stopHub } from '../node/join/systemd-units.ts'
import { assertDone, changeNode } from './change-node.ts'
import { flagCommand } from './command-flags.ts'
import type { ExitCode, Terminal } from './command.ts'
import { joinFlags } from './join-command.ts'
import { nodeNameFlag, nodePathFlags, conflictingFlags } from './join-flags.ts'
import { printChanges } from './printed-changes.ts'

export const leaveFlags = {
  force: option({
    type: boolean,
    help: 'Leave even while pods run that the legacy filter put on the host network, or if no API server answers.',
  }),
  purge: option({
    type: boolean,
    help: "Remove the hub's state too, with its keys and recorded Secrets; of --root-dir, all but copies of files that were changed since the join.",
  }),
  'node-name': nodeNameFlag,
  ...nodePathFlags,
  'cni-conf-dir': former(
    nodePathFlags['root-dir'].type,
    'The folder of the network.',
    'leave rolls back what join has written, and nothing else',
  ),
}

type Values = ValuesOf<typeof leaveFlags>

/** Reverts the files that join has written. */
export const leave = flagCommand({
  usage: 'leave [FLAG...]',
  description: `Rolls back what nodehub join has changed on this node, byte for byte, and removes the files that
were not there. What others have changed since, they keep. The Node object stays in its pool.

Exit codes: 0, the node has left; 1, it could not, and says why; 2, invalid arguments.
`,
  flags: leaveFlags,
  wrong: ({ values }) => [...conflictingFlags(values), ...purgeMistakes(values)],
  act: ({ values }, terminal) => runLeave(values, lockNode, terminal),
})

/** `leave` with these flags, which are in order. */
export function runLeave(values: Values, lock: NodeLocking, terminal: Terminal): Promise<ExitCode> {
  const progress = { begun: false }
  const ending = (): string =>
    progress.begun ? 'Leave again: it goes on from there.' : 'Nothing was changed.'
  return changeNode({ command: 'leave', values, terminal, lock, ending }, async () => {
    await left(values, terminal, progress)
    return values.purge && !values['dry-run'] ? purged(values, terminal) : 0
  })
}

/** A hub that goes on running keeps its state. */
const purgeMistakes = ({ purge, restart, root, 'dry-run': dryRun }: Values): string[] =>
  purge && !restart && !dryRun && root === '/'
    ? ['--purge: add --restart, with which the hub ends']
    : []

/**
 * The kubelet's time to end the pod of a removed manifest, with a grace period of its own. One that
 * has just been restarted waits for the volumes of the pod first, and gives up after 123 s where
 * the manifest has gone meanwhile.
 */
const endingMs = 180_000

async function purged(values: Values, terminal: Terminal): Promise<ExitCode> {
  const { root, restart, 'root-dir': rootDir } = values
  try {
    const kept = await purgeState(root, rootDir, root === '/' || restart ? endingMs : 0)
    for (const path of kept) terminal.err(`note: ${path} has copies of your files, and stays\n`)
    terminal.out(`removed the hub's state in ${rootDir}\n`)
    return 0
  } catch (cause) {
    terminal.err(
      `nodehub leave: the node has left, but the hub's state was not removed: ${messageOf(cause)}\n`,
    )
    return 1
  }
}

async function left(
  values: Values,
  terminal: Terminal,
  progress: { begun: boolean },
): Promise<void> {
  const rootDir = values['root-dir']
  const files = new NodeFiles(values.root)
  const archive = new JoinArchive(files, rootDir)
  const record = archive.read()
  if (record === undefined) {
    if (!values.force) checkNeverJoined(files, rootDir)
    if (new Adoption(files, rootDir).read() !== undefined)
      throw new Error(
        `the hub has yurthub's place on this node: nodehub adopt --rollback rolls that back`,
      )
    // What an interrupted leave has left.
    if (!values['dry-run']) archive.forget()
    terminal.out('nothing to roll back\n')
    return
  }
  const bySystemd = 'systemd' in record
  if (bySystemd && values.restart && values.root !== '/')
    throw new Error('systemd runs the hub of this host: leave there, and not from a container')
  const plan = planLeave(files, rootDir, record)
  for (const note of plan.notes) terminal.err(`note: ${note}\n`)
  if (values['dry-run']) {
    printChanges(terminal, [...plan.first, ...plan.last])
    return
  }
  if (!values.force) {
    const unknown = await refusePropagated(record, files, values)
    if (unknown !== undefined) terminal.err(`note: ${unknown}\n`)
  }
  progress.begun = true
  applyChanges(files, plan.copies)
  applyChanges(files, plan.first)
  if (values.restart) assertDone('the kubelet was not restarted', await restartKubelet(values.root))
  if (values.restart && bySystemd) assertDone('the hub was not stopped', await runLine(stopHub))
  const hasDummy = record.files.some(({ path }) => path === dummyUnitPaths.unit)
  const isHere = values.restart && values.root === '/'
  const kept = hasDummy && isHere ? await runLine(removeDummy) : undefined
  if (kept !== undefined)
    terminal.err(`note: the interface of pods stays until the next boot: ${kept}\n`)
  applyChanges(files, plan.last)
  forgetJoin(files, rootDir, record)
  const changes = [...plan.first, ...plan.last]
  for (const { path, after } of changes)
    terminal.out(`${after ? 'rolled back' : 'removed'} ${path}\n`)
  if (isHere && (bySystemd || hasDummy)) {
    const failed = await runLine(reloadUnits)
    if (failed !== undefined) terminal.err(`note: systemctl daemon-reload: ${failed}\n`)
  }
  if (record.files.some(({ path }) => path === keptPortsFile))
    terminal.out(
      `The kernel keeps the ports up to the hub's until the next boot, or: ${releasePorts}\n`,
    )
  if (hasDummy && !isHere)
    terminal.out(`The interface of pods stays until the next boot, or: ${removeDummy}\n`)
  if (!values.restart) {
    const hubToo = bySystemd ? ` && ${stopHub} && ${reloadUnits}` : ''
    terminal.out(`Restart the kubelet now: systemctl restart kubelet${hubToo}\n`)
  }
  terminal.out(`The Node object is still in ${record.nodePool}; ${howToChangeKind}.\n`)
}

/**
 * Without a record the original files are unknown. Throws if the kubelet's flags show that the node
 * has joined.
 */
function checkNeverJoined(files: NodeFiles, rootDir: string): void {
  const [flags, kubeconfig] = [joinFlags['kubelet-flags'], joinFlags['hub-kubeconfig']].map(
    (flag) => flag.default,
  )
  if (files.read(flags ?? '')?.content.includes(`--kubeconfig=${kubeconfig}`) !== true) return
  throw new Error(
    `no join is recorded in ${rootDir}/joined (--root-dir), but ${flags} leads the kubelet to a hub: ` +
      'roll the files back by hand (docs/join.md)',
  )
}

/** Throws where the hub must not be removed now; resolves to a note on what is not known. */
async function refusePropagated(
  record: JoinRecord,
  files: NodeFiles,
  values: Values,
): Promise<string | undefined> {
  const likely = mayPropagate(record, files)
  // The filter acts only on nodes of host-network pools; without it, pods of an earlier hub may be
  // left.
  if (!likely && !record.hostNetwork) return undefined
  const pods = await podsAtServer(record, files, values['node-name'])
  if ('failure' in pods) {
    const unknown = `whether pods run that only the hub puts on the host network is not known: ${pods.failure}`
    if (!likely) return `${unknown}; no file of this node shows any`
    throw new Error(
      `${unknown}; without the hub these would be torn down: leave when it answers, or with --force`,
    )
  }
  if (pods.length === 0) return undefined
  throw new Error(
    `pods run on the host network that only the hub puts there, and without it they are torn down: delete them first, or --force: ${pods.join(', ')}`,
  )
}

async function podsAtServer(
  record: JoinRecord,
  files: NodeFiles,
  given: string | undefined,
): ReturnType<typeof propagatedPods> {
  try {
    const api = new ApiServer(files, record.kubeletKubeconfig)
    const node = given ?? api.nodeName
    if (node !== undefined) return await propagatedPods(api, node)
    return { failure: 'the name of the node is not known (--node-name)' }
  } catch (cause) {
    return { failure: `no API server can be reached: ${messageOf(cause)}` }
  }
}

/**
 * Whether the hub may have put pods on the host network: it runs with the legacy filter, or with
 * settings outside of its manifest.
 */
const mayPropagate = (record: JoinRecord, files: NodeFiles): boolean =>
  /host-network-propagation[=\s'"]+(?!off)|--config\b|NODEHUB_HOST_NETWORK_PROPAGATION|NODEHUB_CONFIG|EnvironmentFile/.test(
    settingsOfHub(record, files),
  )

/** The text of the files with the hub's flags. */
function settingsOfHub(record: JoinRecord, files: NodeFiles): string {
  const folder = dropInFolder(record)
  const names = folder === undefined ? [] : files.names(folder)
  const dropIns = names.filter((name) => name.endsWith('.conf')).map((name) => `${folder}/${name}`)
  return [flagsPath(record), ...dropIns]
    .map((path) => files.read(path)?.content.toString() ?? '')
    .join('\n')
}
