import { hubLabel } from '../../api/kube/install-report.ts'

/** The settings of the installers of hubs. */
export interface NodeInstallation {
  readonly namespace: string
  /** Of installers and hubs. */
  readonly image: string
  /** API servers of the hubs, as `--server-addr` takes them; absent: the kubelet's. */
  readonly serverAddresses?: string
  /** The folder of the hubs' state on nodes, where it is not the usual one. */
  readonly rootDir?: string
  /** The address at which pods reach the hubs, where it is not the usual one. */
  readonly dummyAddress?: string
  /** Flags of `nodehub adopt`, for those that adopt. */
  readonly adoptFlags?: readonly string[]
}

/** The DaemonSet whose pods install hubs. */
const installerName = 'nodehub-install'

const removerName = 'nodehub-remove'

/**
 * Two DaemonSets that put a hub on nodes with the label `nodehub.io/hub=install`, and take it from
 * those with `nodehub.io/hub=remove`. Without the label nothing happens to a node.
 */
export const nodeInstallers = (installation: NodeInstallation): readonly object[] => [
  daemonSet(
    installation,
    installerName,
    'install',
    installation.dummyAddress === undefined ? [] : [`--dummy-if-ip=${installation.dummyAddress}`],
  ),
  daemonSet(installation, removerName, 'remove', ['--uninstall']),
]

/**
 * Two DaemonSets that put hubs in the place of yurthubs of static pods: on nodes with the label
 * `nodehub.io/hub=adopt`, and yurthub in its place again on those with `nodehub.io/hub=roll-back`.
 */
export const nodeAdopters = (installation: NodeInstallation): readonly object[] => [
  daemonSet(installation, 'nodehub-adopt', 'adopt', adopterArgs(installation)),
  daemonSet(installation, 'nodehub-roll-back', 'roll-back', [
    '--uninstall',
    ...adopterArgs(installation),
  ]),
]

const adopterArgs = ({ adoptFlags = [] }: NodeInstallation): readonly string[] => [
  '--adopt',
  ...ofYurthubNode,
  ...adoptFlags,
]

/** Its kubelet has no credentials, which would say the name, and reaches the API by its hub. */
const ofYurthubNode = [
  '--kubelet-kubeconfig=/var/lib/openyurt/kubelet.conf',
  '--node-name=$(NODE_NAME)',
] as const

type Wanted = 'install' | 'remove' | 'adopt' | 'roll-back'

const daemonSet = (
  installation: NodeInstallation,
  name: string,
  wanted: Wanted,
  args: readonly string[],
) => {
  const labels = { 'app.kubernetes.io/name': 'nodehub', 'app.kubernetes.io/component': name }
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name, namespace: installation.namespace, labels },
    spec: {
      selector: { matchLabels: labels },
      // A pod is available once the hub of its release is ready: nodes are upgraded one after
      // another, or as many at a time as an operator gives it as maxUnavailable.
      updateStrategy: { type: 'RollingUpdate' },
      template: {
        metadata: { labels },
        spec: podSpec(installation, wanted, args),
      },
    },
  }
}

const podSpec = (
  { image, serverAddresses, rootDir }: NodeInstallation,
  wanted: Wanted,
  args: readonly string[],
) => ({
  nodeSelector: { [hubLabel]: wanted },
  // It waits for the hub at loopback, and a node of a host-network pool has no pod network.
  hostNetwork: true,
  dnsPolicy: 'Default',
  priorityClassName: 'system-node-critical',
  tolerations: [{ operator: 'Exists' }],
  // On the Node it writes with the kubelet's credentials, which may write their own Node alone.
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  // Within it an adoption that is under way puts yurthub's manifest back, on a slow disk too.
  terminationGracePeriodSeconds: 30,
  securityContext: { runAsUser: 0, runAsGroup: 0, seccompProfile: { type: 'RuntimeDefault' } },
  initContainers: [
    {
      ...container(image, [
        'install',
        ...args,
        `--image=${image}`,
        ...(serverAddresses === undefined ? [] : [`--server-addr=${serverAddresses}`]),
        ...(rootDir === undefined ? [] : [`--root-dir=${rootDir}`]),
      ]),
      name: wanted,
      ...(args.some((arg) => arg.includes('$(NODE_NAME)')) && {
        env: [{ name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
      }),
      // Of root's rights those with which a file of the host keeps its owner.
      securityContext: {
        ...unprivileged,
        capabilities: { drop: ['ALL'], add: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER'] },
      },
      volumeMounts: [{ name: 'host', mountPath: '/host' }],
    },
  ],
  containers: [
    {
      ...container(image, ['install', '--hold']),
      name: 'hold',
      securityContext: { ...unprivileged, runAsUser: 65_532, runAsGroup: 65_532 },
    },
  ],
  volumes: [{ name: 'host', hostPath: { path: '/', type: 'Directory' } }],
})

const unprivileged = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
}

const container = (image: string, args: readonly string[]) => ({
  image,
  imagePullPolicy: 'IfNotPresent',
  args,
  terminationMessagePolicy: 'FallbackToLogsOnError',
  resources: { requests: { cpu: '10m', memory: '48Mi' }, limits: { memory: '256Mi' } },
})
