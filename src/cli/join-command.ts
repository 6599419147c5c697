import { hostname } from 'node:os'
import { bootstrapToken, parseBootstrapToken } from '../config/bootstrap.ts'
import { tokenInTheClear } from '../config/checks.ts'
import { kubeletCredentials } from '../config/credentials.ts'
import { option, type ValuesOf } from '../config/option.ts'
import { flagsOfHub } from '../config/options.ts'
import {
  atLeastOne,
  boolean,
  dummyAddress,
  listOf,
  objectName,
  optional,
  serverAddress,
} from '../config/value.ts'
import { ApiServer } from '../node/join/api-server.ts'
import { kindOfPool, labelNode, membershipOf } from '../node/join/pool-membership.ts'
import { hostCommandPath, hostCommandPaths, isRootOfImage } from '../node/join/host-command.ts'
import { flagsPath, type HubRunner } from '../node/join/hub-files.ts'
import {
  CannotJoin,
  applyJoin,
  howToChangeKind,
  planJoin,
  type JoinSettings,
} from '../node/join/join.ts'
import { arePortsKept, keepPorts, keptPortsFile } from '../node/join/kept-ports.ts'
import { canMakeDummy, dummyUnitPaths, joinedDummy, makeDummy } from '../node/join/dummy-unit.ts'
import { bootstrapKubelet } from '../node/join/kubelet-bootstrap.ts'
import { UnreadableFlags } from '../node/join/kubelet-flags.ts'
import { hubIsReady, restartKubelet, runLine } from '../node/join/kubelet-service.ts'
import { NodeFiles } from '../node/join/node-files.ts'
import { lockNode, type NodeLocking } from '../node/join/node-lock.ts'
import { JoinArchive, type JoinRecord } from '../node/join/record.ts'
import { canRunBySystemd, runtimeIn, whyNoService } from '../node/join/runnable.ts'
import { runtimeNetwork } from '../node/join/runtime-network.ts'
import { startHub } from '../node/join/systemd-units.ts'
import { isHubOfNode, yurthubOf, type Yurthub } from '../node/join/yurthub.ts'
import { podLogCommand } from '../node/join/static-pod.ts'
import { portListeners } from '../node/join/port-listeners.ts'
import { assertDone, changeNode, pullMs } from './change-node.ts'
import { flagCommand } from './command-flags.ts'
import type { ExitCode, Terminal } from './command.ts'
import { tokenVariable } from './hidden-token.ts'
import {
  absolutePath,
  hubKubeconfigFlag,
  nodeNameFlag,
  nodePathFlags,
  conflictingFlags,
  hubImageFlag,
  hubPortFlags,
  kubeletPair,
  manifestFolderFlag,
  offlineReadyFlag,
  portsOf,
} from './join-flags.ts'
import { printChanges } from './printed-changes.ts'

export const joinFlags = {
  'nodepool-name': option({
    type: objectName,
    help: 'The NodePool that the node is to be in. Required.',
  }),
  'host-network-node': option({
    type: optional(boolean),
    aliases: ['host-network-pool'],
    defaultShown: 'read from the API server',
    help: 'The pool is a host-network pool.',
  }),
  'server-addr': option({
    type: optional(atLeastOne(listOf(serverAddress))),
    defaultShown: "that of the kubelet's kubeconfig",
    help: 'API servers of the hub.',
  }),
  'join-token': option({
    type: bootstrapToken,
    secret: true,
    help: `A bootstrap token, for a node that has not joined the cluster yet: with it the kubelet gets its certificate, as by kubeadm join. Not used where the kubelet's kubeconfig is there. Or ${tokenVariable} in the environment, which other users of the node cannot read.`,
  }),
  ...flagsOfHub('discovery-token-ca-cert-hash', 'discovery-token-unsafe-skip-ca-verification'),
  systemd: option({
    type: optional(boolean),
    defaultShown:
      'as the node has joined before; else true where systemd, /opt/nodehub and its Node are there and no flag of a static pod is given',
    help: 'Run the hub as a systemd service, with its ports held by systemd, in place of a static pod. It takes /opt/nodehub, and Node in its bin/ (as packages install it) or in /usr/local/bin.',
  }),
  'keep-ports': option({
    type: optional(boolean),
    defaultShown: 'as the node has joined before, else false',
    help: "Have the kernel keep all ports up to a static pod's for root (net.ipv4.ip_unprivileged_port_start in /etc/sysctl.d), so that no other user takes them while the hub is down. Other services there have to run as root, too.",
  }),
  'enable-dummy-if': option({
    type: optional(boolean),
    aliases: ['dummy-interface'],
    defaultShown: 'as the node has joined before; else true where systemd and /sbin/ip are there',
    help: 'Have a unit of systemd make the interface at which pods reach the hub (docs/ports-and-pod-access.md).',
  }),
  'dummy-if-ip': option({
    type: dummyAddress,
    defaultShown: 'as the node has joined before, else 169.254.2.1',
    help: 'The address of this interface, link-local IPv4 or IPv6, also for the hub: fd00::2:1 where pods have IPv6 only.',
  }),
  'host-command': option({
    type: optional(boolean),
    defaultShown:
      'as the node has joined before; else true for a static pod where the host has no nodehub and a folder for it can be written',
    help: 'Give the host of a static pod the command nodehub, which runs in the container of the hub (docs/install.md).',
  }),
  image: hubImageFlag,
  namespace: option({
    type: objectName,
    default: 'kube-system',
    help: "Of the hub's static pod.",
  }),
  'node-name': nodeNameFlag,
  kubeconfig: hubKubeconfigFlag,
  'kubelet-kubeconfig': option({
    type: absolutePath,
    default: '/etc/kubernetes/kubelet.conf',
    help: "The kubelet's present kubeconfig, for requests to an API server. It is not changed.",
  }),
  'hub-kubeconfig': option({
    type: absolutePath,
    default: '/etc/kubernetes/kubelet-nodehub.conf',
    help: "Where to write the kubelet's kubeconfig for the hub.",
  }),
  'kubelet-flags': option({
    type: absolutePath,
    default: '/var/lib/kubelet/kubeadm-flags.env',
    help: 'The environment file with KUBELET_KUBEADM_ARGS.',
  }),
  'manifest-dir': manifestFolderFlag,
  ...hubPortFlags,
  'certificate-authority': option({
    type: absolutePath,
    defaultShown: "the hub's own, which is made in pki/ of --root-dir",
    help: 'The CA of the hub.',
  }),
  overwrite: option({
    type: boolean,
    help: 'Replace files that were changed by hand since the last join.',
  }),
  'offline-ready-condition': offlineReadyFlag,
  ...nodePathFlags,
}

type Given = ValuesOf<typeof joinFlags>

/** The flags, with defaults derived from this node. */
type Values = Omit<Given, 'systemd' | 'keep-ports' | 'enable-dummy-if' | 'host-command'> & {
  readonly systemd: boolean
  /** The path of the command of the host. */
  readonly 'host-command': string | undefined
  readonly 'keep-ports': boolean
  readonly 'enable-dummy-if': boolean
}

const ofStaticPods: readonly (keyof Given)[] = [
  'image',
  'manifest-dir',
  'keep-ports',
  'host-command',
]

/** What a join that fails has changed. */
interface Progress {
  begun: boolean
  /** Whether it has made the node one of the cluster, with a token. */
  isInCluster: boolean
}

/** Writes the files that connect a node's kubelet to the hub, and put the node into its pool. */
export const join = flagCommand({
  usage: 'join --nodepool-name NAME [FLAG...]',
  description: `Puts the hub between this node's kubelet and its API servers, and the node into its pool. Writes a
kubeconfig that points at the hub, the hub's units (or its static pod where /opt/nodehub or systemd
is missing), and in the kubelet's flags that kubeconfig and the pool's label. In a host-network pool
it also limits the container runtime to loopback, and the hub's plain port refuses every caller.
You can run it again at any time; nodehub leave rolls every file back. Without --restart the kubelet
keeps its connection until it is restarted. docs/join.md explains each step.

A node that is in no cluster yet joins one as well, with --join-token, --server-addr and
--discovery-token-ca-cert-hash.

Exit codes: 0, the node has joined; 1, it could not, and says why; 2, invalid arguments.
`,
  flags: joinFlags,
  wrong: ({ values, given }) => [
    ...(values['nodepool-name'] === undefined
      ? ['--nodepool-name is required: the NodePool that the node is to be in']
      : []),
    ...conflictingFlags(values),
    ...bootstrapMistakes(values),
    ...(values.systemd ? ofStaticPods.filter((name) => given.has(name)) : []).map(
      (name) => `--${name} is for a static pod, and --systemd writes none`,
    ),
  ],
  act: ({ values, given }, terminal) =>
    runJoin(
      values,
      { isForPod: ofStaticPods.some((name) => given.has(name)), lock: lockNode },
      terminal,
    ),
})

interface JoinRun {
  /** Whether flags of a static pod are given. */
  readonly isForPod: boolean
  readonly lock: NodeLocking
}

/** `join` with these flags, which are in order. */
export function runJoin(
  values: Given,
  { isForPod, lock }: JoinRun,
  terminal: Terminal,
): Promise<ExitCode> {
  const progress: Progress = { begun: false, isInCluster: false }
  const ending = (): string =>
    progress.begun
      ? 'Join again, or leave: either goes on from there.'
      : progress.isInCluster
        ? 'Nothing else was changed: join again, the token is not needed any more.'
        : 'Nothing was changed.'
  return changeNode({ command: 'join', values, terminal, lock, ending }, () =>
    joined(leftTo(values, isForPod), terminal, progress).catch((cause: unknown) => {
      if (!(cause instanceof UnreadableFlags)) throw cause
      throw new Error(`${values['kubelet-flags']}: ${cause.message}`, { cause })
    }),
  )
}

/** Derives the defaults that depend on the node. */
function leftTo(values: Given, isForPod: boolean): Values {
  const files = new NodeFiles(values.root)
  const existing = new JoinArchive(files, values['root-dir']).read()
  const before = existing && 'systemd' in existing
  const systemd = values.systemd ?? (!isForPod && (before ?? canRunBySystemd(files, values.root)))
  const hasWritten = (file: string): boolean | undefined =>
    existing?.files.some(({ path }) => path === file)
  const written = (existing && files.read(flagsPath(existing))?.content.toString()) ?? ''
  return {
    ...values,
    systemd,
    'keep-ports': values['keep-ports'] ?? hasWritten(keptPortsFile) ?? false,
    'enable-dummy-if':
      values['enable-dummy-if'] ??
      hasWritten(dummyUnitPaths.unit) ??
      canMakeDummy(files, values.root),
    'host-command': systemd ? undefined : hostCommandOf(values, files, existing),
    'dummy-if-ip': values['dummy-if-ip'] ?? /--dummy-if-ip=([0-9a-fA-F:.]+)/.exec(written)?.[1],
  }
}

/** Where the command of the host goes; where it is already, if this node has joined with one. */
function hostCommandOf(
  { 'host-command': wanted, root }: Given,
  files: NodeFiles,
  existing: JoinRecord | undefined,
): string | undefined {
  if (wanted === false) return undefined
  const before = existing?.files.find(({ path }) => hostCommandPaths.includes(path))?.path
  return before ?? hostCommandPath(files, root)
}

async function joined(values: Values, terminal: Terminal, progress: Progress): Promise<ExitCode> {
  const files = new NodeFiles(values.root)
  const nodePool = values['nodepool-name'] ?? ''
  progress.isInCluster = await bootstrapped(values, files, terminal)
  const kubeconfig = values['kubelet-kubeconfig']
  if (!files.isThere(kubeconfig)) {
    throw new CannotJoin(
      `${kubeconfig} is not there: a bare node joins with --join-token (docs/join.md); join knows kubeadm's paths, and not those of k3s or RKE2`,
    )
  }
  const api = new ApiServer(files, kubeconfig)
  const yurthub = yurthubOf(files, values['manifest-dir'])
  const node = values['node-name'] ?? api.nodeName
  const names = node === undefined ? [hostname()] : [hostname(), node]
  refuseHubAsServer(values, { address: api.address, names }, yurthub)
  const membership = node === undefined ? undefined : await membershipOf(api, node)
  // Where the API server was not reached, no further request is sent.
  const isReached = membership !== undefined && 'registered' in membership
  const hostNetwork = await hostNetworkOf(values, { api, nodePool, isReached }, terminal)
  if (membership && 'registered' in membership && membership.registered) {
    if (membership.hostNetwork && !hostNetwork) {
      throw new CannotJoin(
        `the node is one of a host-network pool, and ${nodePool} is none: ${howToChangeKind}`,
      )
    }
    if (membership.nodePool !== undefined && membership.nodePool !== nodePool) {
      throw new CannotJoin(
        `the node is in ${membership.nodePool}: nodes do not change their pool; delete the Node object first`,
      )
    }
  }
  const taken = values.root === '/' ? portListeners(portsOf(values)) : undefined
  if (taken && taken.byOthers.length > 0) {
    throw new CannotJoin(
      `${taken.byOthers.join(', ')}: a hub could not start there, and clients would not reach it`,
    )
  }
  await checkRunnable(files, values)
  const settings = settingsOf(values, { files, api, node, nodePool, hostNetwork })
  const plan = planJoin(files, settings)
  if (taken && plan.isFirst) {
    for (const by of taken.byRoot) terminal.err(`note: ${by}: the hub starts once that has ended\n`)
  }
  for (const note of [...plan.notes, ...notesOnPorts(files, values), ...notesOnCommand(values)])
    terminal.err(`note: ${note}\n`)
  if (yurthub) {
    terminal.err(
      `note: ${yurthub.path} starts a yurthub, which has the ports of the hub: ${yurthub.advice}; the hub starts once that has ended (docs/migrate-from-yurthub.md)\n`,
    )
  }
  for (const note of shadowedBy(files)) terminal.err(`note: ${note}\n`)
  const network = runtimeNetwork(files)
  if (hostNetwork && values['cni-conf-dir'] === undefined)
    terminal.err(`note: the network goes to ${network.folder} (${network.saidBy})\n`)
  if (values['dry-run']) {
    printChanges(terminal, plan.changes)
    return 0
  }
  progress.begun = true
  await applyJoin(files, settings, plan)
  for (const { path } of plan.changes) terminal.out(`wrote ${path}\n`)
  if (plan.changes.length === 0) terminal.out('nothing to change\n')
  await labelled(terminal, { api, node, nodePool }, membership)
  return restarted(values, terminal, files)
}

/** The missing flags and obstacles for a join with a bootstrap token. */
function bootstrapMistakes(values: Given): string[] {
  if (values['join-token'] === undefined) return []
  const { 'discovery-token-ca-cert-hash': hashes, root } = values
  const plain = values['server-addr']?.filter(({ protocol }) => protocol === 'http:') ?? []
  const mistakes = [
    ...(values['server-addr'] === undefined ? ['--server-addr is required'] : []),
    ...(plain.length > 0 ? [tokenInTheClear(plain)] : []),
    ...(root === '/' ? [] : ['--root is for an image, and --join-token for this node']),
    ...(values['dry-run'] ? ['--dry-run cannot show what a cluster would answer'] : []),
  ]
  if (hashes.length === 0 && !values['discovery-token-unsafe-skip-ca-verification']) {
    mistakes.push(
      '--discovery-token-ca-cert-hash is required: kubeadm token create --print-join-command prints it; or, where the network between the node and its API servers is trusted, --discovery-token-unsafe-skip-ca-verification',
    )
  }
  return mistakes.map((mistake) => `--join-token: ${mistake}`)
}

/** Gets the kubelet of a bare node its certificate; false where it needs none. */
async function bootstrapped(
  values: Values,
  files: NodeFiles,
  terminal: Terminal,
): Promise<boolean> {
  const token = parseBootstrapToken(values['join-token'] ?? '')
  if (token === undefined) return false
  const kubeconfig = values['kubelet-kubeconfig']
  if (files.read(kubeconfig) !== undefined) {
    terminal.err(`note: ${kubeconfig} is there, and --join-token is not used\n`)
    return false
  }
  const host = hostname().toLowerCase()
  const nodeName = values['node-name'] ?? host
  const notes = await bootstrapKubelet(files, {
    nodeName,
    servers: values['server-addr'] ?? [],
    token,
    caHashes: values['discovery-token-ca-cert-hash'],
    anyCa: values['discovery-token-unsafe-skip-ca-verification'],
    paths: {
      kubeconfig,
      ca: kubeletCredentials.ca,
      pair: kubeletPair,
      config: '/var/lib/kubelet/config.yaml',
    },
  })
  terminal.out(`the node ${nodeName} has joined the cluster: wrote ${kubeconfig}\n`)
  const other = `${host} is the host's name: the kubelet needs --hostname-override=${nodeName}`
  for (const note of [...notes, ...(nodeName === host ? [] : [other])])
    terminal.err(`note: ${note}\n`)
  return true
}

const manifestOf = (values: Values): string => `${values['manifest-dir']}/nodehub.yaml`

/** A note that other programs can take a static pod's ports, and the remedy. */
function notesOnPorts(files: NodeFiles, values: Values): readonly string[] {
  const ports = portsOf(values)
  const isClosed =
    values.systemd || values['keep-ports'] || arePortsKept(files, ports, values.root !== '/')
  if (isClosed) return []
  return [
    `while the hub is down, after a crash for one, any user's program can take its ports ${ports.proxy}, ${ports.ops} and ${ports.secure}: --keep-ports has the kernel keep them for root, --systemd has systemd hold them (docs/ports-and-pod-access.md)`,
  ]
}

/** A note that the host has no command, where that is because this is a container. */
const notesOnCommand = (values: Values): readonly string[] =>
  values.systemd || values['host-command'] !== undefined || !isRootOfImage(values.root)
    ? []
    : [
        'the host is given no command nodehub, as this container has a root of its own: nodehub manifests --part command prints it (docs/install.md)',
      ]

/** Throws `CannotJoin` if the hub could not start, or two hubs would. */
async function checkRunnable(files: NodeFiles, values: Values): Promise<void> {
  const other: HubRunner = values.systemd ? { staticPod: manifestOf(values) } : { systemd: true }
  const found = flagsPath(other)
  const isOwn = new JoinArchive(files, values['root-dir'])
    .read()
    ?.files.some(({ path }) => path === found)
  if (isOwn !== true && files.read(found) !== undefined) {
    throw new CannotJoin(
      `${found} starts a hub of its own, and only one can have the ports: take it away first`,
    )
  }
  if (!values.systemd) return
  const why = await whyNoService(files, values.root)
  if (why !== undefined) throw new CannotJoin(why)
}

/**
 * Throws if the hub would be its own API server, or a yurthub would be: each would wait for the
 * other.
 */
function refuseHubAsServer(
  values: Values,
  { address, names }: { readonly address: string; readonly names: readonly string[] },
  yurthub: Yurthub | undefined,
): void {
  const given = values['server-addr']
  const servers = given ?? [new URL(address)]
  const ofNode = (server: URL): boolean => isHubOfNode(server, portsOf(values), names)
  const hub = servers.find(ofNode)
  if (hub === undefined) return
  const from = given ? '--server-addr' : `the kubeconfig ${values['kubelet-kubeconfig']}`
  const advice = `give the API servers of the cluster with --server-addr${yurthub ? `, as yurthub has them (${yurthub.flagsIn})` : ''}`
  throw new CannotJoin(
    `${from} leads to ${hub.origin}, where a hub of this node listens (nodehub or yurthub), and not to an API server: ${advice}`,
  )
}

/** Whether the pool is a host-network pool: as given, which must not differ from the cluster's. */
async function hostNetworkOf(
  { 'host-network-node': given }: Values,
  { api, nodePool, isReached }: Pick<NodeFacts, 'api' | 'nodePool'> & { isReached: boolean },
  terminal: Terminal,
): Promise<boolean> {
  if (given !== undefined && !isReached) return given
  const kind = await kindOfPool(api, nodePool)
  if ('hostNetwork' in kind && (given ?? kind.hostNetwork) === kind.hostNetwork)
    return kind.hostNetwork
  if ('hostNetwork' in kind)
    throw new CannotJoin(
      `--host-network-node=${given}, but NodePool ${nodePool} at ${api.address} is ${kind.hostNetwork ? 'a' : 'no'} host-network pool: leave the flag out, or give another --nodepool-name`,
    )
  if (given === undefined)
    throw new CannotJoin(
      `${kind.failure}; say whether ${nodePool} is a host-network pool: --host-network-node=true or =false`,
    )
  if ('isMissing' in kind)
    terminal.err(
      `note: ${kind.failure}: until it is created, the node is one without a pool; is --nodepool-name right?\n`,
    )
  return given
}

interface NodeFacts {
  readonly files: NodeFiles
  readonly api: ApiServer
  readonly node: string | undefined
  readonly nodePool: string
  readonly hostNetwork: boolean
}

/** The file of the CA of the hub's certificate. */
const authorityOf = (values: Values): string =>
  values['certificate-authority'] ?? `${values['root-dir']}/pki/ca.crt`

function settingsOf(values: Values, found: NodeFacts): JoinSettings {
  const { files, api, node, nodePool, hostNetwork } = found
  const certificate = api.certificateFile ?? kubeletPair
  const { 'root-dir': rootDir, 'dummy-if-ip': dummyAddress } = values
  const servers = values['server-addr']?.map(({ origin }) => origin) ?? [api.address]
  return {
    nodePool,
    hostNetwork,
    rootDir,
    runBy: values.systemd ? { systemd: true } : { staticPod: manifestOf(values) },
    keepPorts: values['keep-ports'],
    dummyInterface: values['enable-dummy-if'],
    dummyAddress,
    hostCommand: values['host-command'],
    hub: {
      image: values.image,
      serverAddresses: servers.join(','),
      // The kubelet sets it in a static pod; systemd knows only the host's name.
      nodeName: values.systemd ? node : values['node-name'],
      namespace: values.namespace,
      kubeconfig: values.kubeconfig,
      ports: portsOf(values),
      reports: values['offline-ready-condition'],
      more: dummyAddress === undefined ? [] : [`--dummy-if-ip=${dummyAddress}`],
      runtime: runtimeIn(files),
    },
    kubelet: {
      server: `https://127.0.0.1:${values['proxy-secure-port']}`,
      certificateAuthority: authorityOf(values),
      clientCertificate: certificate,
      clientKey: api.keyFile ?? certificate,
    },
    ownAuthority: values['certificate-authority'] === undefined,
    paths: {
      kubeletFlags: values['kubelet-flags'],
      kubeconfig: values['hub-kubeconfig'],
      kubeletKubeconfig: values['kubelet-kubeconfig'],
      networkFolder: values['cni-conf-dir'] ?? runtimeNetwork(files).folder,
    },
    overwrite: values.overwrite,
  }
}

/** Flags of these files follow kubeadm's, and take precedence. */
const later = ['/etc/default/kubelet', '/etc/sysconfig/kubelet']

function shadowedBy(files: NodeFiles): readonly string[] {
  return later.flatMap((path) => {
    const found = /--(?:bootstrap-)?kubeconfig\b/.exec(files.read(path)?.content.toString() ?? '')
    return found
      ? [`${path} has ${found[0]}, which overrides the file that join writes: take it out`]
      : []
  })
}

async function labelled(
  terminal: Terminal,
  { api, node, nodePool }: Omit<NodeFacts, 'files' | 'hostNetwork'>,
  membership: Awaited<ReturnType<typeof membershipOf>> | undefined,
): Promise<void> {
  const byHand = `kubectl label node ${node ?? 'NAME'} apps.openyurt.io/nodepool=${nodePool}`
  if (node === undefined || membership === undefined || 'failure' in membership) {
    const why = membership && 'failure' in membership ? membership.failure : 'its name is not known'
    terminal.err(
      `note: whether there is a Node object is not known (${why}); if there is: ${byHand}\n`,
    )
    return
  }
  // A kubelet labels only a Node that it creates.
  if (!membership.registered || membership.nodePool === nodePool) return
  const failed = await labelNode(api, node, nodePool)
  if (failed) terminal.err(`note: the Node could not be labelled (${failed.failure}): ${byHand}\n`)
  else terminal.out(`labelled node ${node} with apps.openyurt.io/nodepool=${nodePool}\n`)
}

async function restarted(values: Values, terminal: Terminal, files: NodeFiles): Promise<ExitCode> {
  if (!values.restart) {
    if (values['keep-ports'])
      terminal.out(
        `The kernel keeps the ports of the hub from the next boot on, or now: ${keepPorts}\n`,
      )
    if (values['enable-dummy-if'])
      terminal.out(`Pods have an interface from the next boot on, or now: ${makeDummy}\n`)
    terminal.out(
      values.systemd
        ? `The kubelet goes through the hub once both are started: ${startHub} && systemctl restart kubelet\n`
        : 'The kubelet starts the hub now, and goes through it once it is restarted: systemctl restart kubelet\n',
    )
    return 0
  }
  if (values['keep-ports'])
    assertDone(
      'the kernel does not keep the ports, and the kubelet was not restarted',
      await runLine(keepPorts),
    )
  const notMade = values['enable-dummy-if'] ? await runLine(makeDummy) : undefined
  if (notMade !== undefined)
    terminal.err(
      `note: ${joinedDummy()?.name} is not made, and pods do not reach the hub: ${notMade}\n`,
    )
  if (values.systemd)
    assertDone('the hub was not started, nor the kubelet restarted', await runLine(startHub))
  const ca = files.text(authorityOf(values))
  const isReady = await hubIsReady({ ports: portsOf(values), ca }, pullMs)
  assertDone(
    'the hub is not ready, and the kubelet was not restarted',
    isReady ? undefined : values.systemd ? 'journalctl -u nodehub' : podLogCommand,
  )
  assertDone('the kubelet was not restarted', await restartKubelet())
  return 0
}
