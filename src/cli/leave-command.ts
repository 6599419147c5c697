import { boolean } from '../config/value.ts'
import { ApiServer } from '../join/api-server.ts'
import { propagatedPods } from '../join/cluster.ts'
import { changingKind } from '../join/join.ts'
import { restartKubelet } from '../join/kubelet-service.ts'
import { forgetJoin, planLeave, takeBack } from '../join/leave.ts'
import { NodeFiles } from '../join/node-files.ts'
import { Joined, type JoinRecord } from '../join/record.ts'
import { runtimeNetwork } from '../join/runtime-network.ts'
import { commandFlag, helpOfFlags, readFlags, type FlagValues } from './command-flags.ts'
import { refuse, type Command, type ExitCode, type Terminal } from './command.ts'
import { joinFlags } from './join-command.ts'
import { nodeNameFlag, placeFlags } from './join-flags.ts'
import { printChanges } from './printed-changes.ts'

/** What `nodehub leave` takes. */
export const leaveFlags = {
  force: commandFlag({
    type: boolean,
    default: false,
    help: 'Leave also while pods run that the legacy filter put on the host network, or where nobody can be asked about them.',
  }),
  'node-name': nodeNameFlag,
  ...placeFlags,
}

type Values = FlagValues<typeof leaveFlags>

/** Takes back what join has written. */
export const leave: Command = {
  help: () => `Usage: nodehub leave [FLAG...]

Restores every file of this node that nodehub join has changed, byte for byte, and removes those
that were not there. What others have changed since, they keep. The Node object stays in its pool.

Exit codes: 0, the node has left; 1, it could not, and says why; 2, not understood.

${helpOfFlags(leaveFlags)}`,
  async run(argv, terminal) {
    const { values, words, mistakes } = readFlags(leaveFlags, argv)
    const wrong = [
      ...mistakes,
      ...words.map((word) => `${JSON.stringify(word)} is not a flag`),
      ...(values.restart && values.root !== '/'
        ? ['--restart is for this node, and --root is not']
        : []),
    ]
    if (wrong.length > 0) return refuse(terminal, 'leave', wrong)
    const progress = { begun: false }
    try {
      return await left(values, terminal, progress)
    } catch (cause) {
      terminal.err(`nodehub leave: ${messageOf(cause)}\n${afterFailing(progress)}\n`)
      return 1
    }
  },
}

const messageOf = (cause: unknown): string =>
  cause instanceof Error ? cause.message : String(cause)

const afterFailing = ({ begun }: { begun: boolean }): string =>
  begun ? 'Leave again: it goes on from there.' : 'Nothing was changed.'

async function left(
  values: Values,
  terminal: Terminal,
  progress: { begun: boolean },
): Promise<ExitCode> {
  const rootDir = values['root-dir']
  const files = new NodeFiles(values.root)
  const record = new Joined(files, rootDir).read()
  const networkFolder = values['cni-conf-dir'] ?? runtimeNetwork(files).folder
  const plan = planLeave(files, rootDir, networkFolder, record)
  for (const note of plan.notes) terminal.err(`note: ${note}\n`)
  if (values['dry-run']) {
    printChanges(terminal, [...plan.first, ...plan.last])
    return 0
  }
  const obstacle = record && !values.force ? await obstacleTo(record, files, values) : undefined
  if (obstacle !== undefined) throw new Error(obstacle)
  if (!record && !values.force) checkNeverJoined(files, rootDir)
  progress.begun = true
  takeBack(files, plan.copies)
  takeBack(files, plan.first)
  if (values.restart) {
    const failed = await restartKubelet()
    if (failed !== undefined) {
      terminal.err(`nodehub leave: the kubelet was not restarted: ${failed}; leave again\n`)
      return 1
    }
  }
  takeBack(files, plan.last)
  forgetJoin(files, rootDir, record)
  const changes = [...plan.first, ...plan.last]
  for (const { path, after } of changes) terminal.out(`${after ? 'restored' : 'removed'} ${path}\n`)
  if (changes.length === 0) terminal.out('nothing to take back\n')
  if (record === undefined) return 0
  if (!values.restart) terminal.out('Restart the kubelet now: systemctl restart kubelet\n')
  terminal.out(`The Node object is still in ${record.nodePool}; ${changingKind}.\n`)
  return 0
}

/** Without a record nothing is known of what stood where. Throws where the kubelet's flags say all the same that the node has joined. */
function checkNeverJoined(files: NodeFiles, rootDir: string): void {
  const [flags, kubeconfig] = [joinFlags['kubelet-flags'], joinFlags['hub-kubeconfig']].map(
    (flag) => flag.default,
  )
  if (files.read(flags ?? '')?.content.includes(`--kubeconfig=${kubeconfig}`) !== true) return
  throw new Error(
    `no join is recorded in ${rootDir}/joined (--root-dir), but ${flags} leads the kubelet to a hub: ` +
      'put back by hand what was there (docs/run-on-a-node.md)',
  )
}

/** Why the hub is not to be taken away now. */
async function obstacleTo(
  record: JoinRecord,
  files: NodeFiles,
  values: Values,
): Promise<string | undefined> {
  if (!mayPropagate(files.read(record.staticPod)?.content.toString() ?? '')) return undefined
  const api = new ApiServer(files, record.kubeletKubeconfig)
  const node = values['node-name'] ?? api.nodeName
  const pods =
    node === undefined
      ? { unknown: 'the name of the node is not known: --node-name' }
      : await propagatedPods(api, node)
  if ('unknown' in pods) {
    return `whether pods run that the hub put on the host network is not known (${pods.unknown}): delete them first, or --force`
  }
  if (pods.length === 0) return undefined
  return `pods run on the host network that only the hub puts there, and without it they are torn down: delete them first, or --force: ${pods.join(', ')}`
}

/** Whether the hub is started with the legacy filter, or with settings that are not in its manifest. */
const mayPropagate = (manifest: string): boolean =>
  /host-network-propagation[=\s'"]+(?!off)|--config\b|NODEHUB_HOST_NETWORK_PROPAGATION|NODEHUB_CONFIG/.test(
    manifest,
  )
