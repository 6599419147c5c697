import { configFile, logLevel } from './operation-options.ts'
import { option, type Option } from './option.ts'
import * as is from './value.ts'

/** How `nodehub cluster` and its subcommands reach the API server. */
const access = {
  kubeconfig: option({
    type: is.optional(is.text('FILE')),
    group: 'API servers',
    help: 'Where the API server is and what it is shown. Default in a pod: its service account.',
    default: undefined,
    file: true,
  }),
  context: option({
    type: is.optional(is.text('NAME')),
    group: 'API servers',
    help: 'Another context of the kubeconfig than its current one.',
    default: undefined,
  }),
  namespace: option({
    type: is.objectName,
    group: 'API servers',
    help: 'Where the Lease, the Secret of the certificates and the record of what was taken over are, and the Service of the webhooks.',
    default: 'kube-system',
    defaultShown: "the pod's, else kube-system",
  }),
  'kube-api-qps': option({
    type: is.count(1, 10_000),
    group: 'API servers',
    help: 'Requests to the API server a second, watches and the Lease apart.',
    default: 50,
  }),
  'kube-api-burst': option({
    type: is.count(1, 100_000),
    group: 'API servers',
    help: 'How many of them may come at once after a rest.',
    default: 100,
  }),
} as const satisfies Readonly<Record<string, Option<unknown>>>

/** Every setting of `nodehub cluster`, by flag name. */
export const clusterOptions = {
  ...access,
  'webhook-address': option({
    type: is.address,
    group: 'Webhooks',
    help: 'Where API servers ask for admission and conversion.',
    default: '0.0.0.0',
  }),
  'webhook-port': option({
    type: is.port,
    group: 'Webhooks',
    help: 'Port of the same; what the Service leads to.',
    default: 10283,
  }),
  'webhook-service': option({
    type: is.objectName,
    group: 'Webhooks',
    help: 'Name of the Service before the webhooks: the certificate is for NAME.NAMESPACE.svc. Also the name of the webhook configurations whose caBundle is kept right.',
    default: 'nodehub-cluster',
  }),
  'serving-cert': option({
    type: is.optional(is.text('FILE')),
    group: 'Webhooks',
    help: 'What the webhooks show, in PEM, read again when it changes. Default: a certificate of an own authority, both kept in a Secret and made anew before they end.',
    default: undefined,
    file: true,
  }),
  'serving-key': option({
    type: is.optional(is.text('FILE')),
    group: 'Webhooks',
    help: 'Its key.',
    default: undefined,
    file: true,
  }),
  'serving-ca': option({
    type: is.optional(is.text('FILE')),
    group: 'Webhooks',
    help: 'Who vouches for --serving-cert: written into the webhook configurations. Without it they are left as they are.',
    default: undefined,
    file: true,
  }),
  'client-ca': option({
    type: is.optional(is.text('FILE')),
    group: 'Webhooks',
    help: 'Certificates that vouch for API servers, in PEM, read again when they change: then an AdmissionReview without a client certificate of theirs is refused with 401. Default: API servers need none.',
    default: undefined,
    file: true,
  }),
  'certificate-secret': option({
    type: is.objectName,
    group: 'Webhooks',
    help: 'Name of the Secret that the replicas share their authority and certificate in.',
    default: 'nodehub-cluster-certificates',
  }),
  'pod-host-network': option({
    type: is.boolean,
    group: 'Webhooks',
    help: 'Whether a pod whose pool is a host-network pool is given hostNetwork when it is created.',
    default: false,
  }),
  'lease-name': option({
    type: is.objectName,
    group: 'Leader election',
    help: 'Name of the Lease by which one replica leads.',
    default: 'nodehub-cluster',
  }),
  'lease-duration': option({
    type: is.duration,
    group: 'Leader election',
    help: 'How long others wait after the last renewal that they saw.',
    default: 15_000,
    defaultShown: '15s',
  }),
  'renew-deadline': option({
    type: is.duration,
    group: 'Leader election',
    help: 'How long the leader may fail to renew before it stops; less than --lease-duration.',
    default: 10_000,
    defaultShown: '10s',
  }),
  'retry-period': option({
    type: is.duration,
    group: 'Leader election',
    help: 'Time between two tries.',
    default: 2_000,
    defaultShown: '2s',
  }),
  'take-over': option({
    type: is.boolean,
    group: 'Pools',
    help: 'Whether what a yurt-manager does about pools is taken from it, and recorded, so that nodehub cluster give-back can return it. Without, nodehub does not start beside one.',
    default: false,
  }),
  workers: option({
    type: is.count(1, 256),
    group: 'Pools',
    help: 'Nodes that are worked on at a time.',
    default: 16,
  }),
  'ops-address': option({
    type: is.address,
    group: 'Operation',
    help: 'Where health, readiness and metrics are served.',
    default: '0.0.0.0',
  }),
  'ops-port': option({
    type: is.port,
    group: 'Operation',
    help: 'Port of the same.',
    default: 10287,
  }),
  config: configFile,
  'log-level': option({
    type: logLevel,
    group: 'Operation',
    help: 'The least important messages that are logged.',
    default: 'info',
  }),
  'shutdown-grace-period': option({
    type: is.duration,
    group: 'Operation',
    help: 'How long requests under way may take once the process is told to stop. 5 s after that it has ended, by force if need be, and then with an exit code other than 0.',
    default: 10_000,
    defaultShown: '10s',
  }),
} as const satisfies Readonly<Record<string, Option<unknown>>>

/** Every setting of `nodehub cluster check`. */
export const checkOptions = {
  ...access,
  apply: option({
    type: is.boolean,
    group: 'Pools',
    help: 'Whether components that stand on host-network nodes are given the anti-affinity, one after another, each until its pods have settled.',
    default: false,
  }),
  revert: option({
    type: is.boolean,
    group: 'Pools',
    help: 'Whether components get back the affinity that they had before --apply.',
    default: false,
  }),
  evict: option({
    type: is.boolean,
    group: 'Pools',
    help: 'Whether excluded pods on host-network nodes are evicted, as far as their disruption budgets allow.',
    default: false,
  }),
  only: option({
    type: is.listOf(is.text('NAMESPACE/NAME')),
    group: 'Pools',
    help: 'The components that --apply and --revert are for. Default: all that were found.',
    default: [],
  }),
  'settle-timeout': option({
    type: is.duration,
    group: 'Pools',
    help: 'How long the pods of a component may take to settle before the next one is left alone.',
    default: 600_000,
    defaultShown: '10m',
  }),
} as const satisfies Readonly<Record<string, Option<unknown>>>

/** Every setting of `nodehub cluster give-back`. */
export const giveBackOptions = access

/** The values of a table's settings. */
export type ValuesOf<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends Option<infer T> ? T : never
}
