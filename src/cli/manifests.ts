import { defaultRootDir } from '../config/root-dir.ts'
import { parseArgs } from 'node:util'
import { stringify } from 'yaml'
import { ownVersion } from '../base/own-version.ts'
import { clusterManifests } from '../cluster/install/manifests.ts'
import { nodeAdopters, nodeInstallers } from '../cluster/install/nodes.ts'
import { options } from '../config/options.ts'
import { didYouMean } from '../config/suggestion.ts'
import {
  atLeastOne,
  cidr,
  dummyAddress,
  listOf,
  objectName,
  port,
  resource,
  serverAddress,
} from '../config/value.ts'
import {
  kubeletKubeconfig,
  type KubeletKubeconfigOptions,
} from '../node/join/kubelet-kubeconfig.ts'
import { hostCommand } from '../node/join/host-command.ts'
import { printedRuntime } from '../node/join/runnable.ts'
import { hubArgs, staticPod, usualPorts, type HubStart } from '../node/join/static-pod.ts'
import { dummyUnit, dummyUnitName, joinedDummy } from '../node/join/dummy-unit.ts'
import { systemdUnits, unitNames } from '../node/join/systemd-units.ts'
import type { GVR } from '../api/kube/gvk.ts'
import { alwaysShared, nodeBuckets, nodePools } from '../api/kube/node-pool.ts'
import { adoptFlags, passedFlags } from './adopt-command.ts'
import { readFlags, strayWords } from './command-flags.ts'
import { refuse, type Command } from './command.ts'

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

/** The kubelet's rotated certificate and key, in one file. */
export const kubeletPair = '/var/lib/kubelet/pki/kubelet-client-current.pem'

const usualManifest = '/etc/kubernetes/manifests/nodehub.yaml'

type Part = (typeof parts)[number]

const flags = {
  part: { type: 'string' },
  image: { type: 'string' },
  'server-addr': { type: 'string' },
  'node-name': { type: 'string' },
  namespace: { type: 'string' },
  'root-dir': { type: 'string', default: defaultRootDir },
  kubeconfig: { type: 'string' },
  'proxy-port': { type: 'string', default: String(usualPorts.proxy) },
  'proxy-secure-port': { type: 'string', default: String(usualPorts.secure) },
  'serve-port': { type: 'string', default: String(usualPorts.ops) },
  unit: { type: 'string' },
  'dummy-if-ip': { type: 'string' },
  'dummy-if-name': { type: 'string' },
  'certificate-authority': { type: 'string' },
  'client-certificate': { type: 'string', default: kubeletPair },
  'client-key': { type: 'string' },
  'pool-scope-resources': { type: 'string' },
  'offline-authorization': { type: 'string' },
  admission: { type: 'string' },
  'pod-host-network': { type: 'boolean' },
  'controller-user': { type: 'string' },
  'api-server-cidrs': { type: 'string' },
  'ops-cidrs': { type: 'string' },
  'client-ca-config-map': { type: 'string' },
  'adopt-flag': { type: 'string' },
} as const

/** The values of flags that take one of a few. */
const valuesOf: Readonly<Record<string, string>> = {
  part: parts.join('|'),
  unit: [...unitNames, dummyUnitName].join('|'),
}

/** Prints YAML for `kubectl apply`, or for a kubelet's manifest folder. */
export const manifests: Command = {
  help: () => `Usage: nodehub manifests --part PART [FLAG...]

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

  --server-addr https://HOST:PORT,...
        API servers; required for static-pod and systemd. For nodes by default the kubelet's.
  --image IMAGE
        The hub's image. Default: nodehub:${ownVersion()}.
  --node-name NAME
        Default: what the kubelet calls the node; for systemd, the host's name.
  --kubeconfig FILE
        The hub's credentials, under /etc/kubernetes. Default: the kubelet's own certificate.
  --root-dir FOLDER
        The hub's state on the node. Default: /var/lib/nodehub.
  --namespace NAME
        Of the static pod, the ConfigMap and the installers, for rbac too. Default: kube-system.
        Of the cluster's side: nodehub-system.
  --proxy-port PORT, --proxy-secure-port PORT, --serve-port PORT
        Of the hub. Defaults: 10261, 10268, 10267.
  --unit nodehub.socket|nodehub-ipv6.socket|nodehub.service
        Only that one, for systemd; or nodehub-dummy.service.
  --dummy-if-ip IP, --dummy-if-name NAME
        Of the interface at which pods reach the hub, for static-pod and systemd; the address for
        nodes, too. Defaults: 169.254.2.1, hub-dummy0.
  --certificate-authority FILE
        Who vouches for the hub, for kubeconfig. Default: pki/ca.crt under --root-dir.
  --client-certificate FILE
        The kubelet's, for kubeconfig. Default: the one it rotates under /var/lib/kubelet/pki.
  --client-key FILE
        Its key, for kubeconfig. Default: the file of the certificate.
  --pool-scope-resources GROUP/VERSION/RESOURCE,...
        What the hubs are started with, for rbac: a hub shares only what nodes may read whole.
  --pod-host-network
        For cluster: a pod whose pool is a host-network pool is given hostNetwork.
  --controller-user USER,...
        For cluster: as whom nodehub cluster runs besides its service account, where it runs
        elsewhere.
  --api-server-cidrs CIDR,...
        For cluster: from where API servers reach the webhooks. Default: the NetworkPolicy admits
        every address to them.
  --ops-cidrs CIDR,...
        For cluster: from where Prometheus reaches health and metrics. Default: from anywhere.
  --client-ca-config-map NAME
        For cluster: a ConfigMap in its namespace, whose ca.crt vouches for the client certificates
        that API servers show. Default: they need none.
  --adopt-flag=--NAME=VALUE
        For adoption, and more than once for several: a flag of nodehub adopt for all its nodes, one
        of ${passable.map((name) => `--${name}`).join(', ')}.
`,
  completions: () => ({
    flags: Object.fromEntries(
      Object.entries(flags)
        .filter(([name]) => !Object.hasOwn(formerFlags, name))
        .map(([name, { type }]) => [
          name,
          {
            type: {
              placeholder: valuesOf[name] ?? 'VALUE',
              ...(type === 'boolean' && { bare: '' }),
            },
            help: '',
          },
        ]),
    ),
  }),
  async run(argv, terminal) {
    const { values, adoptFlags, mistakes } = parsed(argv)
    const part = parts.find((part) => part === values.part)
    if (mistakes.length > 0 || part === undefined) return refuse(terminal, 'manifests', mistakes)
    terminal.out(manifest(part, values, adoptFlags))
    // On standard error: it is visible if standard output is piped into kubectl.
    for (const name of ['admission', 'offline-authorization'] as const)
      if (values[name] !== undefined)
        terminal.err(`nodehub manifests: --${name} has no effect any more: ${formerFlags[name]}\n`)
    return 0
  },
}

/** Flags of 0.2.0 that are accepted for one release, and why each has no effect. */
const formerFlags = {
  admission:
    'webhooks admit nodes and pods; docs/cluster.md says which policies of 0.2.0 to delete',
  'offline-authorization': 'hubs read no Roles and bindings',
}

type FlagValues = ReturnType<typeof parsed>['values']

function parsed(argv: readonly string[]) {
  const mistakes: string[] = []
  const { values, tokens } = parseArgs({
    args: [...argv],
    options: flags,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  for (const token of tokens) {
    if (token.kind === 'positional') mistakes.push(`${JSON.stringify(token.value)} is not a flag`)
    else if (token.kind === 'option' && !Object.hasOwn(flags, token.name)) {
      const suggestion = didYouMean(token.name, Object.keys(flags), '--')
      mistakes.push(`${token.rawName} is not known${suggestion}`)
    } else if (token.kind === 'option') {
      const isSwitch = flags[token.name as keyof typeof flags].type === 'boolean'
      if (!isSwitch && !token.value) mistakes.push(`${token.rawName} needs a value`)
      if (isSwitch && token.value) mistakes.push(`${token.rawName} takes no value`)
    }
  }
  const known = Object.fromEntries(
    Object.keys(flags).map((name) => [name, textOf(values[name])]),
  ) as Record<keyof typeof flags, string | undefined>
  const adoptFlags = tokens.flatMap((token) =>
    token.kind === 'option' && token.name === 'adopt-flag' ? [token.value ?? ''] : [],
  )
  const wrong = [...wrongValues(known), ...wrongAdoptFlags(adoptFlags, known.part)]
  return { values: known, adoptFlags, mistakes: [...mistakes, ...wrong] }
}

/** Flags of `nodehub adopt` that a DaemonSet can pass on. */
const passable = [...Object.keys(passedFlags), 'manifest-dir']

function wrongAdoptFlags(given: readonly string[], part: string | undefined): readonly string[] {
  if (given.length > 0 && part !== 'adoption') return ['--adopt-flag is for --part adoption']
  const read = readFlags(adoptFlags, given)
  const others = [...read.given].filter((name) => !passable.includes(name))
  return [
    ...read.mistakes,
    ...strayWords(read.words),
    ...others.map(
      (name) =>
        `--${name} is not for a DaemonSet, but ${passable.map((each) => `--${each}`).join(', ')} are`,
    ),
  ].map((mistake) => `--adopt-flag: ${mistake}`)
}

const textOf = (value: unknown): string | undefined => {
  if (value === true) return 'true'
  return typeof value === 'string' ? value : undefined
}

const paths = [
  'root-dir',
  'kubeconfig',
  'certificate-authority',
  'client-certificate',
  'client-key',
] as const

function wrongValues(values: Record<keyof typeof flags, string | undefined>): string[] {
  const mistakes: string[] = []
  if (!parts.some((part) => part === values.part)) {
    mistakes.push(`--part must be one of ${parts.join(', ')}`)
  }
  if (values.part === 'static-pod' && values['server-addr'] === undefined) {
    mistakes.push('--server-addr is required for the static pod')
  }
  const isDummy = values.unit === dummyUnitName
  if (values.part === 'systemd' && values['server-addr'] === undefined && !isDummy) {
    mistakes.push('--server-addr is required for the units')
  }
  if (values.unit !== undefined && !isDummy && !unitNames.some((name) => name === values.unit)) {
    mistakes.push(`--unit must be one of ${[...unitNames, dummyUnitName].join(', ')}`)
  }
  const checks = [
    ['server-addr', atLeastOne(listOf(serverAddress))],
    ['node-name', objectName],
    ['namespace', objectName],
    ['proxy-port', port],
    ['proxy-secure-port', port],
    ['serve-port', port],
    ['pool-scope-resources', listOf(resource)],
    ['offline-authorization', options['offline-authorization'].type],
    ['dummy-if-ip', dummyAddress],
    ['dummy-if-name', options['dummy-if-name'].type],
    ['api-server-cidrs', atLeastOne(listOf(cidr))],
    ['ops-cidrs', atLeastOne(listOf(cidr))],
    ['client-ca-config-map', objectName],
  ] as const
  for (const [name, type] of checks) {
    const text = values[name]
    const checked = text === undefined ? undefined : type.parse(text)
    if (checked && 'wrong' in checked)
      mistakes.push(`--${name}: ${JSON.stringify(text)} ${checked.wrong}`)
  }
  for (const name of paths) {
    if (values[name]?.startsWith('/') === false) mistakes.push(`--${name} must be an absolute path`)
  }
  if (values.kubeconfig?.startsWith('/etc/kubernetes/') === false) {
    mistakes.push('--kubeconfig must be under /etc/kubernetes, which the pod mounts')
  }
  return mistakes
}

function manifest(part: Part, values: FlagValues, adoptFlags: readonly string[]): string {
  const namespace = values.namespace ?? 'kube-system'
  switch (part) {
    case 'static-pod':
      return yaml(
        staticPod({
          ...startOf(values, namespace),
          image: values.image ?? `nodehub:${ownVersion()}`,
          nodeName: values['node-name'],
        }),
      )
    case 'command':
      return hostCommand({
        rootDir: values['root-dir'] ?? defaultRootDir,
        staticPod: usualManifest,
        image: values.image ?? `nodehub:${ownVersion()}`,
      })
    case 'systemd':
      return units(values, namespace)
    case 'kubeconfig':
      return yaml(kubeletKubeconfig(kubeconfigOptions(values)))
    case 'rbac':
      return rbac(sharedBesides(values['pool-scope-resources']), namespace).map(yaml).join('---\n')
    case 'cluster':
      return clusterManifests({
        name: 'nodehub-cluster',
        namespace: values.namespace ?? clusterNamespace,
        image: values.image ?? `nodehub:${ownVersion()}`,
        podHostNetwork: values['pod-host-network'] !== undefined,
        controllers: values['controller-user']?.split(',') ?? [],
        apiServerCidrs: cidrsOf(values['api-server-cidrs']),
        opsCidrs: cidrsOf(values['ops-cidrs']),
        ...(values['client-ca-config-map'] !== undefined && {
          clientCa: values['client-ca-config-map'],
        }),
      })
        .map(yaml)
        .join('---\n')
    case 'nodes':
      return nodeInstallers({
        namespace,
        image: values.image ?? `nodehub:${ownVersion()}`,
        ...(values['server-addr'] !== undefined && { serverAddresses: values['server-addr'] }),
        ...(values['root-dir'] !== defaultRootDir && { rootDir: values['root-dir'] ?? '' }),
        ...(values['dummy-if-ip'] !== undefined && { dummyAddress: values['dummy-if-ip'] }),
      })
        .map(yaml)
        .join('---\n')
    case 'adoption':
      return nodeAdopters({
        namespace,
        image: values.image ?? `nodehub:${ownVersion()}`,
        ...(values['root-dir'] !== defaultRootDir && { rootDir: values['root-dir'] ?? '' }),
        adoptFlags,
      })
        .map(yaml)
        .join('---\n')
    case 'configmap':
      return `${configMapComment}${yaml(configMap(namespace))}`
  }
}

const startOf = (values: FlagValues, namespace: string): HubStart => ({
  serverAddresses: values['server-addr'] ?? '',
  namespace,
  rootDir: values['root-dir'] ?? defaultRootDir,
  kubeconfig: values.kubeconfig,
  ports: {
    proxy: Number(values['proxy-port']),
    secure: Number(values['proxy-secure-port']),
    ops: Number(values['serve-port']),
  },
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
  const clientCertificate = values['client-certificate'] ?? kubeletPair
  const rootDir = values['root-dir'] ?? defaultRootDir
  return {
    server: `https://127.0.0.1:${Number(values['proxy-secure-port'])}`,
    certificateAuthority: values['certificate-authority'] ?? `${rootDir}/pki/ca.crt`,
    clientCertificate,
    clientKey: values['client-key'] ?? clientCertificate,
  }
}

const yaml = (document: object): string =>
  stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })

/** The address blocks of a validated flag. */
function cidrsOf(text = ''): readonly string[] {
  const parsed = listOf(cidr).parse(text)
  return 'value' in parsed ? parsed.value : []
}

/** The resources of a validated flag. */
function sharedBesides(text = ''): readonly GVR[] {
  const parsed = listOf(resource).parse(text)
  return 'value' in parsed ? parsed.value : []
}

/**
 * A node's certificate already has the rights of the kubelet (ClusterRole system:node). Components
 * without credentials use it through the hub, and a kube-proxy also reads EndpointSlices. Resources
 * that hubs share they must list and watch whole. Filters read the node's own NodePool by name and
 * its NodeBuckets by label, which differ between nodes: no rule can name them. The hubs' ConfigMap
 * has one name.
 */
const rbac = (besides: readonly GVR[], namespace: string): readonly object[] => [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'nodehub' },
    rules: [
      ...[...Map.groupBy([...alwaysShared, ...besides], ({ group }) => group)].map(
        ([group, shared]) => ({
          apiGroups: [group],
          resources: [...new Set(shared.map(({ resource }) => resource))],
          verbs: ['get', 'list', 'watch'],
        }),
      ),
      {
        apiGroups: [nodePools.group],
        resources: [nodePools.resource, nodeBuckets.resource],
        verbs: ['get', 'list', 'watch'],
      },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'nodehub' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'nodehub' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:nodes' }],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'nodehub-config', namespace },
    rules: [
      {
        apiGroups: [''],
        resources: ['configmaps'],
        resourceNames: [configMapName],
        // A list or watch by name is authorized for that name.
        verbs: ['get', 'list', 'watch'],
      },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'nodehub-config', namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'nodehub-config' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:nodes' }],
  },
]

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
