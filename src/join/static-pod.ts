/** What differs from node to node in the hub's static pod. */
export interface StaticPodOptions {
  readonly image: string
  readonly serverAddresses: string
  /** Absent: what the kubelet calls the node. */
  readonly nodeName: string | undefined
  readonly namespace: string
  readonly rootDir: string
  /** A kubeconfig under /etc/kubernetes; absent: the kubelet's own certificate. */
  readonly kubeconfig: string | undefined
  /** The NodePool of the node; absent: from the node's label. */
  readonly nodePool?: string
  /** Whether that is a host-network pool, whose pods all reach the node's loopback: the plain proxy stays closed then. */
  readonly hostNetwork?: boolean
  /** Of the TLS proxy; absent: the usual one. */
  readonly securePort?: number
}

const opsPort = 10267

/**
 * The hub as a static pod on the node's network: the kubelet runs it before it can reach any API server, which is how it comes to
 * reach one. Matches the image of the Dockerfile, whose entry point is `nodehub`.
 */
export function staticPod(options: StaticPodOptions): object {
  const { image, namespace, rootDir } = options
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'nodehub',
      namespace,
      labels: { 'app.kubernetes.io/name': 'nodehub', 'app.kubernetes.io/component': 'hub' },
    },
    spec: {
      hostNetwork: true,
      dnsPolicy: 'Default',
      // Both, as kubeadm writes them: for a static pod no admission resolves the class.
      priorityClassName: 'system-node-critical',
      priority: 2_000_001_000,
      restartPolicy: 'Always',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 30,
      tolerations: [{ operator: 'Exists' }],
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'nodehub',
          image,
          imagePullPolicy: 'IfNotPresent',
          args: argsOf(options),
          env: [nodeNameVariable(options.nodeName)],
          livenessProbe: { ...probe('/livez'), initialDelaySeconds: 10, failureThreshold: 6 },
          readinessProbe: { ...probe('/readyz'), failureThreshold: 3 },
          resources: {
            requests: { cpu: '100m', memory: '128Mi' },
            limits: { memory: '512Mi' },
          },
          securityContext: {
            // Root: the kubelet's certificates are root's alone. Nothing more than that of root is needed.
            runAsUser: 0,
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          volumeMounts: [
            { name: 'state', mountPath: rootDir },
            { name: 'kubernetes', mountPath: '/etc/kubernetes', readOnly: true },
            { name: 'kubelet-pki', mountPath: '/var/lib/kubelet/pki', readOnly: true },
          ],
        },
      ],
      volumes: [
        { name: 'state', hostPath: { path: rootDir, type: 'DirectoryOrCreate' } },
        { name: 'kubernetes', hostPath: { path: '/etc/kubernetes', type: 'Directory' } },
        { name: 'kubelet-pki', hostPath: { path: '/var/lib/kubelet/pki', type: 'Directory' } },
      ],
    },
  }
}

function argsOf(options: StaticPodOptions): string[] {
  const {
    serverAddresses,
    namespace,
    rootDir,
    kubeconfig,
    nodePool,
    hostNetwork = false,
    securePort,
  } = options
  return [
    'start',
    `--server-addr=${serverAddresses}`,
    `--root-dir=${rootDir}`,
    ...(namespace === 'kube-system' ? [] : [`--namespace=${namespace}`]),
    kubeconfig === undefined ? '--bootstrap-mode=kubeletcertificate' : `--kubeconfig=${kubeconfig}`,
    ...(nodePool === undefined ? [] : [`--nodepool-name=${nodePool}`]),
    ...(hostNetwork ? ['--host-network-node', '--plain-proxy=false'] : []),
    ...(securePort === undefined ? [] : [`--proxy-secure-port=${securePort}`]),
  ]
}

const nodeNameVariable = (nodeName: string | undefined): object =>
  nodeName === undefined
    ? { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }
    : { name: 'NODE_NAME', value: nodeName }

const probe = (path: string): object => ({
  httpGet: { host: '127.0.0.1', port: opsPort, path, scheme: 'HTTP' },
  periodSeconds: 10,
  timeoutSeconds: 5,
})
