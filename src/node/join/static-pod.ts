import { options } from '../../config/options.ts'

/** The Node of the Dockerfile's image. */
export const imageRuntime = '/usr/local/bin/node'
export const imageMain = '/app/dist/src/main.js'

/** Shows the last lines of the hub of a static pod, also where no client of the runtime is. */
export const podLogCommand = 'tail -n 20 /var/log/pods/*_nodehub-*/nodehub/*.log'

/** The ports of a hub. */
export interface HubPorts {
  readonly proxy: number
  readonly secure: number
  readonly ops: number
}

export const usualPorts: HubPorts = {
  proxy: options['proxy-port'].default,
  secure: options['proxy-secure-port'].default,
  ops: options['serve-port'].default,
}

/** How the hub of a node is started. */
export interface HubStart {
  readonly serverAddresses: string
  readonly namespace: string
  readonly rootDir: string
  /** A kubeconfig under /etc/kubernetes; absent: the kubelet's own certificate. */
  readonly kubeconfig: string | undefined
  /** Whether the hub has a certificate of its own in its folder, which it renews itself. */
  readonly ownCertificate?: boolean
  /** The NodePool of the node; absent: from the node's label. */
  readonly nodePool?: string
  /**
   * Whether the pool has a host network, where all pods reach the node's loopback: the plain proxy
   * stays closed then.
   */
  readonly hostNetwork?: boolean
  readonly ports: HubPorts
  /** Whether the hub writes a condition to its Node. */
  readonly reports?: boolean
  /** Other flags, as they are given. */
  readonly more?: readonly string[]
}

/** The settings of the hub's static pod. */
export interface StaticPodOptions extends HubStart {
  readonly image: string
  /** Absent: the kubelet's name of the node. */
  readonly nodeName: string | undefined
}

/**
 * The hub as a static pod on the node's network: the kubelet runs it before it can reach an API
 * server, and then reaches one through it. Matches the image of the Dockerfile, whose entry point
 * is `nodehub`.
 */
export function staticPod(pod: StaticPodOptions): object {
  const { image, namespace, rootDir, ports } = pod
  const probe = (path: string): object => ({
    // Plain HTTP without credentials: health is no secret.
    httpGet: { host: '127.0.0.1', port: ports.ops, path, scheme: 'HTTP' },
    periodSeconds: 10,
    timeoutSeconds: 5,
  })
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'nodehub',
      namespace,
      labels: { 'app.kubernetes.io/name': 'nodehub', 'app.kubernetes.io/component': 'hub' },
    },
    spec: {
      ...ofNode,
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      containers: [
        {
          name: 'nodehub',
          image,
          imagePullPolicy: 'IfNotPresent',
          args: hubArgs(pod),
          env: [nodeNameVariable(pod.nodeName)],
          livenessProbe: { ...probe('/livez'), initialDelaySeconds: 10, failureThreshold: 6 },
          readinessProbe: { ...probe('/readyz'), failureThreshold: 3 },
          resources: {
            requests: { cpu: '100m', memory: '128Mi' },
            limits: { memory: '512Mi' },
          },
          securityContext: {
            // Root: the kubelet's certificates are root's alone. More than that of root only ports
            // that the node keeps for root need (net.ipv4.ip_unprivileged_port_start).
            runAsUser: 0,
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] },
          },
          volumeMounts: mountsOf(rootDir),
        },
      ],
      volumes: volumesOf(rootDir),
    },
  }
}

/** A pod that the node needs. */
const ofNode = {
  hostNetwork: true,
  dnsPolicy: 'Default',
  // Both, as kubeadm writes them: for a static pod no admission resolves the class.
  priorityClassName: 'system-node-critical',
  priority: 2_000_001_000,
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  tolerations: [{ operator: 'Exists' }],
  securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
}

const mountsOf = (rootDir: string): readonly object[] => [
  { name: 'state', mountPath: rootDir },
  { name: 'kubernetes', mountPath: '/etc/kubernetes', readOnly: true },
  { name: 'kubelet-pki', mountPath: '/var/lib/kubelet/pki', readOnly: true },
]

const volumesOf = (rootDir: string): readonly object[] => [
  { name: 'state', hostPath: { path: rootDir, type: 'DirectoryOrCreate' } },
  { name: 'kubernetes', hostPath: { path: '/etc/kubernetes', type: 'Directory' } },
  { name: 'kubelet-pki', hostPath: { path: '/var/lib/kubelet/pki', type: 'Directory' } },
]

/** The flag of a hub that writes a condition to its Node. */
export const reportFlag = '--offline-ready-condition'

/** The arguments of `nodehub` that start the hub. */
export function hubArgs(start: HubStart): string[] {
  const {
    serverAddresses,
    namespace,
    rootDir,
    kubeconfig,
    nodePool,
    hostNetwork = false,
    ports,
    reports = false,
    more = [],
  } = start
  return [
    'start',
    `--server-addr=${serverAddresses}`,
    `--root-dir=${rootDir}`,
    ...(namespace === 'kube-system' ? [] : [`--namespace=${namespace}`]),
    ...(start.ownCertificate ? [] : [credentialsFlag(kubeconfig)]),
    ...(nodePool === undefined ? [] : [`--nodepool-name=${nodePool}`]),
    ...(hostNetwork ? ['--host-network-node', '--plain-proxy=false'] : []),
    ...(reports ? [reportFlag] : []),
    ...(ports.proxy === usualPorts.proxy ? [] : [`--proxy-port=${ports.proxy}`]),
    ...(ports.secure === usualPorts.secure ? [] : [`--proxy-secure-port=${ports.secure}`]),
    ...(ports.ops === usualPorts.ops ? [] : [`--serve-port=${ports.ops}`]),
    ...more,
  ]
}

const credentialsFlag = (kubeconfig: string | undefined): string =>
  kubeconfig === undefined ? '--bootstrap-mode=kubeletcertificate' : `--kubeconfig=${kubeconfig}`

const nodeNameVariable = (nodeName: string | undefined): object =>
  nodeName === undefined
    ? { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }
    : { name: 'NODE_NAME', value: nodeName }
