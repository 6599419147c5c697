import { former } from './former-options.ts'
import { kubernetesNames } from './kubernetes-names.ts'
import { configFile, gracePeriod, logLevel, readableFile } from './operation-options.ts'
import { option, under } from './option.ts'
import * as is from './value.ts'

const fairness = 'API servers share themselves out (API Priority and Fairness)'

/** How `nodehub cluster` and its subcommands reach the API server. */
const access = {
  ...under('API servers', {
    kubeconfig: option({
      ...readableFile,
      help: 'The kubeconfig for the API server. Default in a pod: its service account.',
    }),
    context: option({
      type: is.text('NAME'),
      help: 'The context of the kubeconfig. Default: its current one.',
    }),
    namespace: option({
      type: is.objectName,
      help: 'The namespace of the Lease, the Secret with certificates, the record of --take-over, and the Service of the webhooks.',
      default: 'kube-system',
      defaultShown: "the pod's, else kube-system",
    }),
  }),
  'kube-api-qps': former(is.count(1, 10_000), 'Requests per second to the API server.', fairness),
  'kube-api-burst': former(is.count(1, 100_000), 'The burst of these requests.', fairness),
} as const

/** Every setting of `nodehub cluster`, by flag name. */
export const clusterOptions = {
  ...access,
  ...under('Webhooks', {
    'webhook-address': option({
      type: is.address,
      help: 'The address of admission and conversion webhooks.',
      default: '0.0.0.0',
    }),
    'webhook-port': option({
      type: is.port,
      help: 'The port of the webhooks: the target port of the Service.',
      default: 10283,
    }),
    'webhook-service': option({
      type: is.objectName,
      help: 'The Service of the webhooks: the certificate is for NAME.NAMESPACE.svc. Also the name of the webhook configurations whose caBundle is kept correct.',
      default: 'nodehub-cluster',
    }),
    'serving-cert': option({
      ...readableFile,
      help: 'The serving certificate of the webhooks in PEM, read again when it changes. Default: a certificate of its own authority; both are in a Secret and rotated.',
    }),
    'serving-key': option({
      ...readableFile,
      help: 'Its key.',
    }),
    'serving-ca': option({
      ...readableFile,
      help: 'The CA of --serving-cert, written into the webhook configurations. Without it they are not changed.',
    }),
    'client-ca': option({
      ...readableFile,
      help: "CAs of API servers' client certificates in PEM, read again when they change: an AdmissionReview without such a certificate is answered 401. Default: none is needed.",
    }),
    'certificate-secret': option({
      type: is.objectName,
      help: 'The Secret with the authority and certificate that the replicas share.',
      default: 'nodehub-cluster-certificates',
    }),
    'pod-host-network': option({
      type: is.boolean,
      help: 'Give a pod whose pool is a host-network pool hostNetwork when it is created.',
    }),
  }),
  ...under('Leader election', {
    'lease-name': option({
      type: is.objectName,
      help: 'The Lease for leader election.',
      default: 'nodehub-cluster',
    }),
    'lease-duration': option({
      type: is.duration,
      help: 'How long other replicas wait after the last observed renewal.',
      default: 15_000,
      defaultShown: '15s',
    }),
    'renew-deadline': option({
      type: is.duration,
      help: 'How long the leader may fail to renew before it stops; less than --lease-duration.',
      default: 10_000,
      defaultShown: '10s',
    }),
    'retry-period': option({
      type: is.duration,
      help: 'Time between two tries.',
      default: 2_000,
      defaultShown: '2s',
    }),
  }),
  ...under('Pools', {
    'take-over': option({
      type: is.boolean,
      help: 'Take NodePools over from a yurt-manager, with a record for nodehub cluster give-back. Without it, nodehub does not start beside one.',
    }),
    workers: option({
      type: is.count(1, 256),
      help: 'Nodes that are reconciled concurrently.',
      default: 16,
    }),
  }),
  ...under('Certificates of hubs', {
    'hub-cert-signers': option({
      type: is.listOf(is.signerName),
      help: "Signers for which CertificateSigningRequests of nodes for their hubs' serving certificates are approved, or denied (docs/ports-and-pod-access.md). Another one needs the right to approve for it; empty: it decides on none.",
      default: ['kubernetes.io/kubelet-serving'],
    }),
    'hub-cert-organizations': option({
      type: is.listOf(is.organization),
      help: 'Organizations that such a certificate may have besides system:nodes. The signer kubernetes.io/kubelet-serving takes none.',
    }),
    'hub-cert-names': option({
      type: is.listOf(is.dnsName),
      help: 'Names that it may be for.',
      default: [...kubernetesNames, 'localhost'],
      defaultShown:
        'localhost and the names of the API server: kubernetes, kubernetes.default, ….svc, ….svc.cluster.local',
    }),
    'hub-cert-addresses': option({
      type: is.listOf(is.address),
      help: 'Addresses that it may be for: those of loopback and of the dummy interface.',
      default: ['127.0.0.1', '::1', '169.254.2.1', 'fd00::2:1'],
    }),
    'hub-cert-node-cidrs': option({
      type: is.listOf(is.cidr),
      help: 'Where the addresses of nodes are, if a certificate may be for those of its node as well (hubs with --hub-address). A node writes its addresses itself: leave out those of API servers and their load balancers.',
    }),
  }),
  ...under('Operation', {
    'ops-address': option({
      type: is.address,
      help: 'The address of health, readiness and metrics.',
      default: '0.0.0.0',
    }),
    'ops-port': option({
      type: is.port,
      help: 'The port of health, readiness and metrics.',
      default: 10287,
    }),
  }),
  config: configFile,
  ...under('Operation', {
    'log-level': option({
      type: logLevel,
      help: 'The lowest level that is logged.',
      default: 'info',
    }),
    'shutdown-grace-period': option(gracePeriod),
  }),
} as const

const byHand = 'what it did is printed as commands of kubectl'

/** Every setting of `nodehub cluster check`. */
export const checkOptions = {
  ...access,
  apply: former(is.boolean, 'Kept components off host-network nodes.', byHand),
  revert: former(is.boolean, 'Restored the affinity from before --apply.', byHand),
  evict: former(is.boolean, 'Evicted excluded pods from host-network nodes.', byHand),
  only: former(is.listOf(is.text('NAMESPACE/NAME')), 'Components that --apply was for.', byHand),
  'settle-timeout': former(is.duration, 'How long a rollout could take.', byHand),
} as const

/** Every setting of `nodehub cluster exit-plan`. */
export const exitPlanOptions = {
  ...access,
  ...under('Pools', {
    'keep-off': option({
      type: is.listOf(is.text('NAMESPACE/NAME')),
      help: 'Owners whose pods are to stay off host-network nodes from now on.',
    }),
  }),
  ...under('Operation', {
    output: option({
      type: is.oneOf(['table', 'yaml', 'json']),
      short: 'o',
      help: 'How the plan is printed.',
      default: 'table',
    }),
  }),
  mixed: former(
    is.oneOf(['ask', 'host-network', 'keep-off']),
    'What to do with owners that have pods on standard nodes, too.',
    'the plan prints the patch to the host network, and --keep-off names the others',
  ),
  apply: former(is.boolean, 'Carried the plan out.', byHand),
  only: former(is.listOf(is.text('NAMESPACE/NAME')), 'Owners that --apply was for.', byHand),
  'include-managed': former(is.boolean, 'Patched owners that other tools write.', byHand),
  recreate: former(is.boolean, 'Created pods without an owner and Jobs again.', byHand),
  'settle-timeout': former(is.duration, 'How long a rollout could take.', byHand),
} as const

/** Every setting of `nodehub cluster give-back`. */
export const giveBackOptions = access
