import { ports, type Installation } from './installation.ts'

const labelsOf = ({ name }: Installation) => ({
  'app.kubernetes.io/name': 'nodehub',
  'app.kubernetes.io/component': name,
})

/**
 * Two replicas that all admit, of which one leads; with a disruption budget, and network policies.
 */
export const workload = (installation: Installation): readonly object[] => {
  const { name, namespace } = installation
  const metadata = { name, namespace, labels: labelsOf(installation) }
  const selector = { matchLabels: labelsOf(installation) }
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: {
        selector: labelsOf(installation),
        ports: [{ name: 'webhooks', port: 443, targetPort: ports.webhooks, protocol: 'TCP' }],
      },
    },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata,
      spec: { minAvailable: 1, selector, unhealthyPodEvictionPolicy: 'AlwaysAllow' },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata,
      spec: {
        podSelector: selector,
        policyTypes: ['Ingress'],
        ingress: [
          admitted(ports.webhooks, installation.apiServerCidrs),
          admitted(ports.ops, installation.opsCidrs),
        ],
      },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas: 2,
        selector,
        // Admission goes on while a new version comes.
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        template: { metadata: { labels: labelsOf(installation) }, spec: podSpec(installation) },
      },
    },
  ]
}

/** By address alone: an API server is a process on some host, and no selector names it. */
const admitted = (port: number, cidrs: readonly string[] = []) => ({
  ...(cidrs.length > 0 && { from: cidrs.map((cidr) => ({ ipBlock: { cidr } })) }),
  ports: [{ protocol: 'TCP', port }],
})

/** Where the ConfigMap with the authorities of API servers is mounted. */
const clientCaFolder = '/etc/nodehub/client-ca'

const podSpec = (installation: Installation) => ({
  serviceAccountName: installation.name,
  priorityClassName: 'system-cluster-critical',
  enableServiceLinks: false,
  terminationGracePeriodSeconds: 30,
  securityContext: {
    runAsNonRoot: true,
    runAsUser: 65_532,
    runAsGroup: 65_532,
    seccompProfile: { type: 'RuntimeDefault' },
  },
  tolerations: ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'].map(
    (key) => ({ key, operator: 'Exists', effect: 'NoSchedule' }),
  ),
  // API servers reach the pods over the pod network, which nodes of host-network pools and links to
  // the edge do not have.
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          {
            matchExpressions: [
              { key: 'nodepool.openyurt.io/hostnetwork', operator: 'NotIn', values: ['true'] },
              { key: 'openyurt.io/is-edge-worker', operator: 'NotIn', values: ['true'] },
            ],
          },
        ],
      },
    },
  },
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey: 'kubernetes.io/hostname',
      whenUnsatisfiable: 'ScheduleAnyway',
      labelSelector: { matchLabels: labelsOf(installation) },
    },
  ],
  containers: [
    {
      name: 'nodehub',
      image: installation.image,
      imagePullPolicy: 'IfNotPresent',
      args: argsOf(installation),
      env: [{ name: 'NODE_OPTIONS', value: `--max-old-space-size=${heapMegabytes}` }],
      ports: [
        { name: 'webhooks', containerPort: ports.webhooks },
        { name: 'ops', containerPort: ports.ops },
      ],
      livenessProbe: { ...probe('/livez'), initialDelaySeconds: 10, failureThreshold: 6 },
      readinessProbe: { ...probe('/readyz'), failureThreshold: 3 },
      resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '1Gi' } },
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
      ...(installation.clientCa !== undefined && {
        volumeMounts: [{ name: 'client-ca', mountPath: clientCaFolder, readOnly: true }],
      }),
    },
  ],
  ...(installation.clientCa !== undefined && {
    volumes: [{ name: 'client-ca', configMap: { name: installation.clientCa } }],
  }),
})

/**
 * Of the heap: all bodies, parsed, and the stored facts about nodes and pools. The rest of the
 * limit is for connections and for memory outside of the heap.
 */
export const heapMegabytes = 640

const argsOf = ({ name, podHostNetwork, clientCa }: Installation): string[] => [
  'cluster',
  `--webhook-service=${name}`,
  ...(podHostNetwork ? ['--pod-host-network'] : []),
  ...(clientCa === undefined ? [] : [`--client-ca=${clientCaFolder}/ca.crt`]),
]

const probe = (path: string) => ({
  httpGet: { port: ports.ops, path, scheme: 'HTTP' },
  periodSeconds: 10,
  timeoutSeconds: 5,
})
