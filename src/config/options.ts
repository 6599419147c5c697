import { defaultRootDir } from './root-dir.ts'
import { configFile, gracePeriod, logLevel, readableFile } from './operation-options.ts'
import { notImplemented, option, under, type Option, type ValuesOf } from './option.ts'
import { bootstrapToken, publicKeyHash } from './bootstrap.ts'
import { credentialName, program } from './store-key.ts'
import * as is from './value.ts'
import { former } from './former-options.ts'
import { yurthubOptions } from './yurthub-options.ts'

const asAtTheEdge = notImplemented(
  'the hub works as at the edge, but for the filters that it leaves out in cloud mode',
)

/**
 * Every setting of `nodehub start`, by flag name. Names and defaults are yurthub's if it has the
 * setting (cmd/yurthub/app/options/options.go).
 */
export const options = {
  ...under('API servers', {
    'server-addr': option({
      type: is.atLeastOne(is.listOf(is.serverAddress)),
      live: true,
      help: 'API servers, for --lb-mode=priority in order of preference. Required.',
      defaultShown: 'required',
    }),
    'lb-mode': option({
      type: is.oneOf(['round-robin', 'priority', 'consistent-hashing'], { rr: 'round-robin' }),
      live: true,
      help: 'How requests are spread over healthy API servers: each component on one of them in turn (round-robin, or rr), all on the first (priority), by client and path (consistent-hashing).',
      default: 'round-robin',
    }),
    'heartbeat-interval-seconds': option({
      type: is.seconds,
      live: true,
      help: 'Approximate time between two probes of an API server; shorter at first after a failure.',
      default: 10_000,
      defaultShown: '10',
    }),
    'heartbeat-timeout-seconds': option({
      type: is.seconds,
      live: true,
      help: 'How long an API server may take to answer a probe once the connection is up; connecting may take as long, TLS twice. Raise it for links with a long delay.',
      default: 2000,
      defaultShown: '2',
    }),
    'heartbeat-failed-retry': option({
      type: is.count(1, 100),
      live: true,
      help: 'Failed probes in a row that make an API server unhealthy.',
      default: 3,
    }),
    'heartbeat-healthy-threshold': option({
      type: is.count(1, 100),
      live: true,
      help: 'Successful probes in a row that make it healthy again.',
      default: 2,
    }),
    'upstream-compression': option({
      type: is.boolean,
      help: 'Request compressed lists and watches even for clients that accept none; the hub inflates them.',
      live: true,
    }),
  }),
  ...under('Credentials', {
    kubeconfig: option({
      ...readableFile,
      live: true,
      help: "The hub's own credentials: certificate, key, CA or token of its current context; read again when it changes.",
    }),
    'upstream-client-cert': option({
      ...readableFile,
      live: true,
      help: "Instead of --kubeconfig: the hub's client certificate in PEM, read again when it changes.",
    }),
    'upstream-client-key': option({
      ...readableFile,
      live: true,
      help: 'Its key. May be the same file.',
    }),
    'upstream-ca': option({
      ...readableFile,
      live: true,
      help: "CAs of the API servers; without it, the system's.",
    }),
    'bootstrap-mode': option({
      type: is.oneOf(['token', 'kubeletcertificate', 'anonymous']),
      live: true,
      help: "How the hub gets its own credentials, unless they are given. token: a client certificate of its own, requested with --join-token or --bootstrap-file and renewed in time. kubeletcertificate: the kubelet's rotated certificate under /var/lib/kubelet/pki and the CA under /etc/kubernetes/pki. anonymous: a hub without credentials of its own, which is refused otherwise.",
      default: 'token',
    }),
    'join-token': option({
      type: bootstrapToken,
      live: true,
      help: 'The bootstrap token with which the hub requests its first certificate, and one after its own has expired. Every user of the node can read a command line while the hub starts: better use the environment, the file of --config, or --bootstrap-file.',
      secret: true,
    }),
    'bootstrap-file': option({
      type: is.orEmpty(is.text('FILE')),
      live: true,
      help: 'Instead of or besides --join-token: a kubeconfig with a bootstrap token, or a certificate, and the CA. Its server is not used.',
    }),
    'discovery-token-ca-cert-hash': option({
      type: is.listOf(publicKeyHash),
      live: true,
      help: "Hashes of the public key of the cluster's CA: the CA that is found with --join-token, or given, has to match one of them.",
    }),
    'discovery-token-unsafe-skip-ca-verification': option({
      type: is.boolean,
      live: true,
      help: 'Trust any CA where no such hash is given: then an attacker who has the token, and is between the node and its API servers, can pass as the cluster.',
    }),
    'client-ca': option({
      ...readableFile,
      help: 'CAs of clients of the TLS proxy. Default: the CAs of the API servers.',
    }),
    'serving-cert': option({
      ...readableFile,
      help: "The serving certificate of the TLS proxy in PEM, read again when it changes. Default: a certificate of the hub's own authority, whose certificate is <root-dir>/pki/ca.crt.",
    }),
    'serving-key': option({
      ...readableFile,
      help: 'Its key.',
    }),
    'hub-cert-signer': option({
      type: is.orEmpty(is.signerName),
      help: 'The signer from which the hub requests its serving certificate, so that pods trust it (docs/ports-and-pod-access.md). By default the certificate is shown at the dummy interface alone; with the flag at every address. Until the hub has one, and while it has no valid one, it shows one of its own authority. <root-dir>/pki/ca.crt has both authorities then. Empty: none is requested.',
      defaultShown:
        "kubernetes.io/kubelet-serving at the dummy interface, if the hub's credentials are a certificate of the node",
    }),
    'hub-cert-organizations': option({
      type: is.listOf(is.organization),
      help: 'Organizations in that certificate besides system:nodes. The signer kubernetes.io/kubelet-serving takes none.',
    }),
  }),
  ...under('Listeners', {
    'bind-address': option({
      type: is.address,
      help: 'The address of health, readiness and metrics; 127.0.0.1 and ::1 stand for both of them.',
      default: '127.0.0.1',
    }),
    'serve-port': option({
      type: is.port,
      help: 'Port of health, readiness and metrics.',
      default: 10267,
    }),
    'bind-proxy-address': option({
      type: is.address,
      help: 'The address of the proxy for the node; 127.0.0.1 and ::1 stand for both of them.',
      default: '127.0.0.1',
    }),
    'proxy-port': option({
      type: is.port,
      help: 'Port of the plain proxy.',
      default: 10261,
    }),
    'proxy-secure-port': option({
      type: is.port,
      help: 'Port of the TLS proxy, and the port of --hub-address where that names none.',
      default: 10268,
    }),
    'plain-proxy': option({
      type: is.optional(is.boolean),
      help: 'Serve the plain proxy. On a host-network node, or with --host-network-propagation, it refuses every caller unless this is true. The port stays bound in any case.',
      defaultShown: 'true, but for host-network nodes and --host-network-propagation',
    }),
    'anonymous-loopback': option({
      type: is.oneOf(['root', 'node', 'none']),
      live: true,
      help: 'The identity of callers without credentials on the plain proxy, and on the TLS proxy while the hub is offline and the plain one serves. root: the node if their socket belongs to root, else refused; node: always the node; none: always refused. At other addresses than loopback they are always refused.',
      default: 'root',
    }),
    'max-requests-in-flight': option({
      // With a single seat none could be reserved for the node.
      type: is.count(2, 100_000),
      live: true,
      help: 'Concurrent short requests, by priority level: a quarter is reserved for the node, and callers with an unproven token get a tenth at most. Others get 429.',
      default: 250,
    }),
    'memory-limit': option({
      type: is.count(128, 1_048_576, 'MEGABYTES'),
      help: 'The approximate memory of the hub. Answers in progress may hold half of it; beyond that short requests get 429, watches never do.',
      defaultShown: "the control group's limit, else 512",
    }),
  }),
  ...under('Node', {
    'node-name': option({
      type: is.objectName,
      help: 'The name of this node.',
      default: '',
      defaultShown: "$NODE_NAME, else the host's name",
    }),
    'nodepool-name': option({
      type: is.orEmpty(is.objectName),
      help: 'The NodePool of this node.',
      defaultShown: "from the node's label",
    }),
    namespace: option({
      type: is.orEmpty(is.objectName),
      help: "Namespace of the hubs' ConfigMap.",
      default: 'kube-system',
    }),
    'hub-config-map': option({
      type: is.orEmpty(is.objectName),
      help: 'The ConfigMap in --namespace with additional components for filters and recording, for all hubs of the cluster. Watched while the hub runs; empty: none.',
      default: 'yurt-hub-cfg',
    }),
    'working-mode': option({
      type: is.oneOf(['edge', 'cloud', 'local']),
      help: 'edge: with a cache; cloud: without, and without the filters discardcloudservice, forwardkubesvctraffic, serviceenvupdater and hostnetworkpropagation; local: on a control plane. In this release the hub has a cache in every mode.',
      default: 'edge',
      warningFor: (mode) => (mode === 'edge' ? undefined : asAtTheEdge),
    }),
    'host-network-node': option({
      type: is.boolean,
      help: 'The node is in a host-network pool: its pods share its loopback, so the plain proxy is off unless --plain-proxy is true.',
    }),
    'offline-ready-condition': option({
      type: is.boolean,
      live: true,
      help: 'Write to the Node, for kubectl nodehub fleet: the condition OfflineReady (would it and its pods come back now without a link?) and the annotation nodehub.io/report.',
      aliases: ['hub-report'],
    }),
    'enable-dummy-if': option({
      type: is.boolean,
      help: 'Listen for pods at the address of a dummy interface too, on --proxy-port and --proxy-secure-port (docs/ports-and-pod-access.md). The hub makes the interface if it may (CAP_NET_ADMIN and the program ip), or uses the one that is there.',
      default: true,
    }),
    'dummy-if-name': option({
      type: is.orEmpty(is.interfaceName),
      aliases: ['hub-agent-dummy-if-name'],
      help: 'The name of this interface.',
      defaultShown: 'hub-dummy0',
    }),
    'dummy-if-ip': option({
      type: is.orEmpty(is.dummyAddress),
      aliases: ['hub-agent-dummy-if-ip'],
      help: 'Its address, IPv6 or link-local IPv4.',
      defaultShown: '169.254.2.1, or fd00::2:1 where --node-ip is IPv6',
    }),
    'hub-address': option({
      type: is.hostAndPort,
      help: 'Where pods reach the hub over TLS, instead of the dummy interface: --bind-proxy-address, or a proxy before it. The filters masterservice, serviceenvupdater and forwardkubesvctraffic direct them there while the hub answers there with a certificate that pods trust (docs/filters.md); otherwise they do nothing. The default port is --proxy-secure-port.',
    }),
  }),
  ...under('Cache', {
    'root-dir': option({
      type: is.text('FOLDER'),
      help: 'The folder of keys and state.',
      default: defaultRootDir,
    }),
    'disk-cache-path': option({
      type: is.text('FOLDER'),
      help: 'The folder of the cache.',
      defaultShown: '<root-dir>/cache',
    }),
    'cache-max-bytes': option({
      type: is.size('16Mi'),
      help: 'The size limit of the cache on the disk. Near the limit the hub evicts the entries confirmed longest ago, and last what the node needs to boot.',
      default: 512 * 2 ** 20,
      defaultShown: '512Mi',
    }),
    'store-key-credential': option({
      type: credentialName,
      help: 'The key that seals secrets and tokens in the store: the systemd credential of this name (LoadCredential=, LoadCredentialEncrypted=). Any 32 bytes or more.',
      defaultShown: 'a key of its own in <root-dir>',
    }),
    'store-key-command': option({
      type: program,
      help: 'The same key from the output of this program. It runs at each start, without arguments, for at most 30 seconds.',
    }),
    'cache-components': option({
      type: is.listOf(is.text('COMPONENT')),
      live: true,
      help: 'Components whose answers are recorded, by their User-Agent; * records all.',
      default: [
        'kubelet',
        'kube-proxy',
        'flanneld',
        'coredns',
        'raven-agent-ds',
        'yurttunnel-agent',
        'yurthub',
        'kubectl',
      ],
    }),
    'boot-refresh-interval': option({
      type: is.duration,
      live: true,
      help: 'How often to read again the objects that pods of the node refer to and the kubelet reads only once (claims, volumes, attachments; Secrets and ConfigMaps without a watch), for a reboot without a link. Discovery, for kubectl at the node, is read again once in twelve intervals, and OpenAPI schemas once in 2,016. 0: never.',
      default: 300_000,
      defaultShown: '5m',
    }),
    'pool-scope-resources': option({
      type: is.listOf(is.resource),
      live: true,
      help: 'Collections of which one copy and one watch are kept for all callers that API servers give them to, whichever program reads them, besides v1/services and discovery.k8s.io/v1/endpointslices.',
    }),
    'min-request-timeout': option({
      type: is.duration,
      help: 'The shortest duration of a watch from the cache that gives no timeoutSeconds; the longest is twice that.',
      default: 1_800_000,
      defaultShown: '30m',
    }),
  }),
  ...under('Filters', {
    'enable-resource-filter': option({
      type: is.boolean,
      live: true,
      help: 'Apply filters to answers.',
      default: true,
    }),
    'disabled-resource-filters': option({
      type: is.listOf(is.text('FILTER')),
      live: true,
      help: 'Disabled filters; * disables all.',
    }),
    'filter-module': option({
      type: is.listOf(is.text('FILE')),
      live: true,
      help: 'Filters of your own: modules of JavaScript or TypeScript that export them. Loaded again when a file changes.',
    }),
    'host-network-propagation': option({
      type: is.oneOf(['off', 'on'], {}, ['guarded', 'observe']),
      live: true,
      help: 'on: the kubelet sees pods of a host-network pool on the host network, as in OpenYurt 1.4; off: as the API server has them. A pod that runs keeps its network, in either mode.',
      default: 'off',
      warningFor: (value) =>
        value === 'guarded' || value === 'observe'
          ? 'has no effect any more: guarded and observe are off; pods keep their network, and new ones are shown as the API server has them'
          : undefined,
    }),
    'enable-node-pool': option({
      type: is.boolean,
      live: true,
      help: 'Watch the NodePool of this node for its filters; else they use the labels of the node.',
      default: true,
    }),
    'enable-pool-service-topology': option({
      type: is.boolean,
      live: true,
      help: 'Take the nodes of the pool from its NodeBuckets instead of the status of its NodePool: less traffic for large pools.',
    }),
    'access-server-through-hub': option({
      type: is.boolean,
      live: true,
      help: 'false leaves out the masterservice filter, as in yurthub 1.4.',
      default: true,
    }),
  }),
  config: configFile,
  ...under('Operation', {
    'log-level': option({
      type: logLevel,
      live: true,
      help: 'The lowest level that is logged.',
      defaultShown: 'info',
    }),
    v: option({
      type: is.count(0, 100, 'LEVEL'),
      live: true,
      help: 'klog verbosity: below 4 is --log-level=info, below 6 debug, from there trace.',
    }),
    'tracing-endpoint': option({
      type: is.orEmpty(is.httpAddress),
      help: 'Where traces of requests are exported: the base address of an OpenTelemetry collector, to which the hub posts OTLP over HTTP at v1/traces (docs/monitoring.md). Without it there is no tracing.',
    }),
    'tracing-sampling-rate-per-million': option({
      type: is.count(0, 1_000_000),
      help: 'How many of a million requests that continue no trace are traced. Requests that continue a sampled trace are always traced.',
      default: 0,
    }),
    'shutdown-grace-period': option({ ...gracePeriod, live: true }),
    version: option({
      type: is.boolean,
      help: 'Print the version and do nothing else.',
    }),
  }),
  'offline-authorization': former(
    is.oneOf(['off', 'decisions', 'rbac']),
    'What decided offline about rights and tokens.',
    'the last decisions of API servers decide, as with decisions',
  ),
  ...yurthubOptions,
} as const

export type OptionName = keyof typeof options

export type Values = ValuesOf<typeof options>

type LiveName = {
  [Name in OptionName]: (typeof options)[Name] extends { readonly live?: true } ? Name : never
}[OptionName]

/** The values of live options, and of those that wait for the next start. */
export type LiveValues = Pick<Values, LiveName>
export type StartValues = Omit<Values, LiveName>

/** These options as flags of a command that has no headings and reads no file. */
export const flagsOfHub = <Name extends OptionName>(
  ...names: readonly Name[]
): Pick<typeof options, Name> =>
  Object.fromEntries(
    names.map((name) => {
      const { group: _, live: __, ...flag }: Option<unknown> = options[name]
      return [name, flag]
    }),
  ) as unknown as Pick<typeof options, Name>
