import { defaultRootDir } from '../config/root-dir.ts'
import { stringify } from 'yaml'
import { clusterManifests } from '../cluster/install/manifests.ts'
import { nodeAdopters, nodeInstallers } from '../cluster/install/nodes.ts'
import { boundRole } from '../cluster/install/roles.ts'
import { former } from '../config/former-options.ts'
import { option, type ValuesOf } from '../config/option.ts'
import { flagsOfHub, options } from '../config/options.ts'
import { strayWords } from '../config/settings.ts'
import {
  atLeastOne,
  boolean,
  cidr,
  dummyAddress,
  listOf,
  objectName,
  oneOf,
  optional,
  resource,
  serverAddress,
  text,
  type ValueType,
} from '../config/value.ts'
import {
  kubeletKubeconfig,
  type KubeletKubeconfigOptions,
} from '../node/join/kubelet-kubeconfig.ts'
import { hostCommand } from '../node/join/host-command.ts'
import { printedRuntime } from '../node/join/runnable.ts'
import { hubArgs, staticPod, type HubStart } from '../node/join/static-pod.ts'
import { dummyUnit, dummyUnitName, joinedDummy } from '../node/join/dummy-unit.ts'
import { systemdUnits, unitNames } from '../node/join/systemd-units.ts'
import type { GVR } from '../api/kube/gvk.ts'
import { alwaysShared, nodeBuckets, nodePools } from '../api/kube/node-pool.ts'
import { adoptFlags, passedFlags } from './adopt-command.ts'
import { flagCommand, readFlags } from './command-flags.ts'
import {
  absolutePath,
  hubImageFlag,
  hubPortFlags,
  kubeletPair,
  hubKubeconfigFlag,
  nodePathFlags,
  portsOf,
} from './join-flags.ts'

const parts = [
  'static-pod',
  'systemd',
  'kubeconfig',
  'rbac',
  'configmap',
  'command',
  'cluster',
  'nodes',
  'adoption',
] as const

/** The default namespace of the cluster's side. */
const clusterNamespace = 'nodehub-system'

const usualManifest = '/etc/kubernetes/manifests/nodehub.yaml'

type Part = (typeof parts)[number]

/** A flag may be given once for each of several. */
const flagsOfAdopt: ValueType<readonly string[], readonly string[]> = {
  absent: [],
  placeholder: '--NAME=VALUE',
  adds: '\n',
  parse: (text) => ({ value: text.split('\n') }),
}

/** Flags of `nodehub adopt` that a DaemonSet can pass on. */
const passable = [...Object.keys(passedFlags), 'manifest-dir']

const listed = (names: readonly string[]): string => names.map((name) => `--${name}`).join(', ')

const flags = {
  part: option({
    type: oneOf(parts),
    help: 'What to print. Required.',
  }),
  'server-addr': option({
    type: optional(atLeastOne(listOf(serverAddress))),
    help: "API servers; required for static-pod and systemd. For nodes by default the kubelet's.",
  }),
  image: hubImageFlag,
  'node-name': option({
    type: objectName,
    defaultShown: "what the kubelet calls the node; for systemd, the host's name",
    help: 'The name of the node.',
  }),
  kubeconfig: hubKubeconfigFlag,
  'root-dir': nodePathFlags['root-dir'],
  namespace: option({
    type: objectName,
    defaultShown: `kube-system; for the cluster's side ${clusterNamespace}`,
    help: 'The namespace of the static pod, the ConfigMap and the installers, for rbac too.',
  }),
  ...hubPortFlags,
  unit: option({
    type: oneOf([...unitNames, dummyUnitName]),
    help: 'For systemd: only this unit.',
  }),
  'dummy-if-ip': option({
    type: dummyAddress,
    defaultShown: '169.254.2.1',
    help: 'For static-pod, systemd and nodes: the address of the interface at which pods reach the hub.',
  }),
  ...flagsOfHub('dummy-if-name'),
  'certificate-authority': option({
    type: absolutePath,
    defaultShown: 'pki/ca.crt under --root-dir',
    help: 'For kubeconfig: the CA of the hub.',
  }),
  'pool-scope-resources': option({
    type: listOf(resource),
    help: 'For rbac: what the hubs are started with. A hub shares only what nodes may read whole.',
  }),
  'pod-host-network': option({
    type: boolean,
    help: 'For cluster: give a pod whose pool is a host-network pool hostNetwork.',
  }),
  'controller-user': option({
    type: listOf(text('USER')),
    help: 'For cluster: as whom nodehub cluster runs besides its service account, where it runs elsewhere.',
  }),
  'api-server-cidrs': option({
    type: atLeastOne(listOf(cidr)),
    defaultShown: 'the NetworkPolicy admits every address to them',
    help: 'For cluster: from where API servers reach the webhooks.',
  }),
  'ops-cidrs': option({
    type: atLeastOne(listOf(cidr)),
    defaultShown: 'from anywhere',
    help: 'For cluster: from where Prometheus reaches health and metrics.',
  }),
  'client-ca-config-map': option({
    type: objectName,
    defaultShown: 'they need none',
    help: 'For cluster: a ConfigMap in its namespace, whose ca.crt vouches for the client certificates that API servers show.',
  }),
  'adopt-flag': option({
    type: flagsOfAdopt,
    default: [],
    help: `For adoption, and more than once for several: a flag of nodehub adopt for all its nodes, one of ${listed(passable)}.`,
  }),
  admission: former(
    text('WAY'),
    'Which admission was printed.',
    'webhooks admit nodes and pods; docs/cluster.md says which policies of 0.2.0 to delete',
  ),
  'offline-authorization': former(
    options['offline-authorization'].type,
    'Printed Roles for hubs.',
    'hubs read no Roles and bindings',
  ),
}

type FlagValues = ValuesOf<typeof flags>

/** Prints YAML for `kubectl apply`, or for a kubelet's manifest folder. */
export const manifests = flagCommand({
  usage: 'manifests --part PART [FLAG...]',
  description: `Prints YAML for kubectl apply, or for a folder of the node. The parts:

  static-pod   the hub on a node: write it to /etc/kubernetes/manifests/nodehub.yaml there
  systemd      the hub on a node as units of systemd, which holds its listening sockets while it is
               down: each to be written to the file that stands above it, or alone with --unit;
               the unit that makes the interface of pods by its name alone
  kubeconfig   for the kubelet's --kubeconfig, to reach the hub with the certificate it has, once
               the hub has run on the node and made its certificate authority there
  rbac         what nodes must be allowed besides what Kubernetes allows them: once per cluster,
               with kubectl apply -f -
  configmap    the hubs' ConfigMap, once per cluster: for which components filters act besides, and
               whose answers are recorded; hubs follow it
  command      the command nodehub for the host of a static pod: write it to /usr/local/bin/nodehub
               there, with mode 0755
  cluster      NodePools: their definition, admission of pools, nodes and pods, and nodehub cluster,
               which serves it and looks after nodes: once per cluster
  nodes        DaemonSets that install the hub as a static pod on nodes with the label
               nodehub.io/hub=install, and take it from those with nodehub.io/hub=remove
  adoption     DaemonSets that put the hub in the place of a yurthub that is a static pod, on nodes
               with the label nodehub.io/hub=adopt, and yurthub in its place again on those with
               nodehub.io/hub=roll-back
`,
  flags,
  wrongWords: strayParts,
  wrong: ({ values, given }) => conflicts(values, given),
  async act({ values }, terminal) {
    const printed = manifest(values.part, values)
    terminal.out(typeof printed === 'string' ? printed : printed.map(yaml).join('---\n'))
    return 0
  },
})

/** A part that is named without its flag is usual. */
function strayParts(words: readonly string[]): readonly string[] {
  return words.flatMap((word) =>
    parts.some((part) => part === word)
      ? [`${JSON.stringify(word)} is not a flag, did you mean --part=${word}?`]
      : strayWords([word], flags),
  )
}

/** Mistakes in the combination of flags. */
function conflicts(
  { part, unit, ...values }: FlagValues,
  given: ReadonlySet<string>,
): readonly string[] {
  const needed = { 'static-pod': 'the static pod', systemd: 'the units' } as const
  const adoptArgs = values['adopt-flag']
  return [
    ...(!given.has('part') ? [`--part is required, one of ${parts.join(', ')}`] : []),
    ...((part === 'static-pod' || (part === 'systemd' && unit !== dummyUnitName)) &&
    !given.has('server-addr')
      ? [`--server-addr is required for ${needed[part]}`]
      : []),
    ...(adoptArgs.length > 0 ? wrongAdoptFlags(adoptArgs, part) : []),
  ]
}

function wrongAdoptFlags(given: readonly string[], part: Part | undefined): readonly string[] {
  if (part !== 'adoption') return ['--adopt-flag is for --part adoption']
  const read = readFlags(adoptFlags, given)
  const others = [...read.given].filter((name) => !passable.includes(name))
  return [
    ...read.mistakes,
    ...strayWords(read.words, adoptFlags),
    ...others.map((name) => `--${name} is not for a DaemonSet, but ${listed(passable)} are`),
  ].map((mistake) => `--adopt-flag: ${mistake}`)
}

/** A text, or the documents of one. */
function manifest(part: Part | undefined, values: FlagValues): string | readonly object[] {
  const namespace = values.namespace ?? 'kube-system'
  const { image, 'root-dir': rootDir } = values
  const installation = { namespace, image, ...(rootDir !== defaultRootDir && { rootDir }) }
  switch (part) {
    case 'static-pod':
      return [staticPod({ ...startOf(values, namespace), image, nodeName: values['node-name'] })]
    case 'command':
      return hostCommand(rootDir, usualManifest)
    case 'systemd':
      return units(values, namespace)
    case 'kubeconfig':
      return [kubeletKubeconfig(kubeconfigOptions(values))]
    case 'rbac':
      return rbac(values['pool-scope-resources'], namespace)
    case 'cluster':
      return clusterManifests({
        name: 'nodehub-cluster',
        namespace: values.namespace ?? clusterNamespace,
        image,
        podHostNetwork: values['pod-host-network'],
        controllers: values['controller-user'],
        apiServerCidrs: values['api-server-cidrs'],
        opsCidrs: values['ops-cidrs'],
        ...(values['client-ca-config-map'] !== undefined && {
          clientCa: values['client-ca-config-map'],
        }),
      })
    case 'nodes':
      return nodeInstallers({
        ...installation,
        ...(values['server-addr'] && { serverAddresses: originsOf(values['server-addr']) }),
        ...(values['dummy-if-ip'] !== undefined && { dummyAddress: values['dummy-if-ip'] }),
      })
    case 'adoption':
      return nodeAdopters({ ...installation, adoptFlags: values['adopt-flag'] })
    case 'configmap':
    case undefined:
      return `${configMapComment}${yaml(configMap(namespace))}`
  }
}

const originsOf = (servers: readonly URL[]): string => servers.map(({ origin }) => origin).join(',')

const startOf = (values: FlagValues, namespace: string): HubStart => ({
  serverAddresses: originsOf(values['server-addr'] ?? []),
  namespace,
  rootDir: values['root-dir'],
  kubeconfig: values.kubeconfig,
  ports: portsOf(values),
  more: (['dummy-if-ip', 'dummy-if-name'] as const).flatMap((name) =>
    values[name] === undefined ? [] : [`--${name}=${values[name]}`],
  ),
})

/** As `systemctl cat` prints units, each under its file name. */
function units(values: FlagValues, namespace: string): string {
  if (values.unit === dummyUnitName) {
    const dummy = joinedDummy(values['dummy-if-ip'], values['dummy-if-name'])
    return dummy ? dummyUnit(dummy) : ''
  }
  const start = startOf(values, namespace)
  const texts = systemdUnits({
    args: hubArgs(start),
    rootDir: start.rootDir,
    ports: start.ports,
    nodeName: values['node-name'],
    runtime: printedRuntime(),
  })
  const only = unitNames.find((name) => name === values.unit)
  if (only !== undefined) return texts[only]
  return unitNames.map((name) => `# /etc/systemd/system/${name}\n${texts[name]}`).join('\n')
}

function kubeconfigOptions(values: FlagValues): KubeletKubeconfigOptions {
  return {
    server: `https://127.0.0.1:${values['proxy-secure-port']}`,
    certificateAuthority: values['certificate-authority'] ?? `${values['root-dir']}/pki/ca.crt`,
    clientCertificate: kubeletPair,
    clientKey: kubeletPair,
  }
}

const yaml = (document: object): string =>
  stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })

/**
 * A node's certificate already has the rights of the kubelet (ClusterRole system:node). Components
 * without credentials use it through the hub, and a kube-proxy also reads EndpointSlices. Resources
 * that hubs share they must list and watch whole. Filters read the node's own NodePool by name and
 * its NodeBuckets by label, which differ between nodes: no rule can name them. The hubs' ConfigMap
 * has one name.
 */
const rbac = (besides: readonly GVR[], namespace: string): readonly object[] => [
  ...boundRole(
    'ClusterRole',
    { name: 'nodehub' },
    [
      ...[...Map.groupBy([...alwaysShared, ...besides], ({ group }) => group)].map(
        ([group, shared]) => ({
          apiGroups: [group],
          resources: [...new Set(shared.map(({ resource }) => resource))],
          verbs,
        }),
      ),
      {
        apiGroups: [nodePools.group],
        resources: [nodePools.resource, nodeBuckets.resource],
        verbs,
      },
    ],
    allNodes,
  ),
  // A list or watch by name is authorized for that name.
  ...boundRole(
    'Role',
    { name: 'nodehub-config', namespace },
    [{ apiGroups: [''], resources: ['configmaps'], resourceNames: [configMapName], verbs }],
    allNodes,
  ),
]

const verbs = ['get', 'list', 'watch'] as const

const allNodes = {
  apiGroup: 'rbac.authorization.k8s.io',
  kind: 'Group',
  name: 'system:nodes',
} as const

const configMapName = options['hub-config-map'].default

const configMapComment = `# Compatible with yurthub's, and followed by every hub while it runs. The name of a filter as a key: components, with
# commas between them, for which that filter acts besides those it is made for. cache_agents: components whose answers
# are recorded besides those of --cache-components; * records all.
`

const configMap = (namespace: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: configMapName,
    namespace,
    labels: { 'openyurt.io/configmap-name': configMapName },
  },
  data: { cache_agents: '' },
})
