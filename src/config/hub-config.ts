import { join } from 'node:path'
import type { GVR } from '../api/kube/gvk.ts'
import { alwaysShared } from '../api/kube/node-pool.ts'
import { parseBootstrapToken, type BootstrapConfig } from './bootstrap.ts'
import type { CredentialFiles } from './credentials.ts'
import { dummyInterfaceOf, type DummyInterfaceConfig } from './dummy-interface.ts'
import { edgeOnlyFilters } from './filter-names.ts'
import type { LiveValues, StartValues, Values } from './options.ts'
import type { SocketsByListener } from './passed-sockets.ts'
import type { StoreKeySource } from './store-key.ts'

/** The whole configuration, parsed once. Frozen; times are in milliseconds. */
export interface HubConfig extends StartConfig, LiveConfig {}

/** Settings that are fixed at the start of a hub. */
export interface StartConfig {
  readonly nodeName: string
  readonly nodepoolName: string | undefined
  /** The hubs' ConfigMap; `undefined`: none is read. */
  readonly configMap: { readonly namespace: string; readonly name: string } | undefined
  /** Health, readiness, metrics. */
  readonly ops: { readonly address: string; readonly port: number }
  /** The proxy's listeners: `port` without TLS, `securePort` with it. */
  readonly proxy: {
    readonly address: string
    readonly port: number
    readonly securePort: number
    /** `--plain-proxy`; `undefined`: not given, and `plainProxy` has the safe default. */
    readonly plain: boolean | undefined
  }
  /** Passed sockets, which take precedence over the addresses above. */
  readonly sockets: SocketsByListener
  readonly rootDir: string
  readonly cachePath: string
  readonly cacheMaxBytes: number
  readonly storeKey: StoreKeySource
  readonly workingMode: Values['working-mode']
  /** How pods reach the hub. If all are absent or false, they cannot. */
  readonly pods: {
    /** The interface that the hub makes for them. */
    readonly dummy: DummyInterfaceConfig | undefined
    /** `--hub-address`, which takes precedence; its port defaults to the secure one. */
    readonly hubAddress: { readonly host: string; readonly port: number } | undefined
    /** Pods share the node's loopback. */
    readonly hostNetworkNode: boolean
  }
  readonly tls: {
    /**
     * Files; absent: the hub's own authority for its certificate, and the API servers' CA for its
     * clients.
     */
    readonly clientCa: string | undefined
    readonly serving: { readonly certificate: string; readonly key: string } | undefined
    /** From whom the hub requests its serving certificate; `undefined`: it does not. */
    readonly signer: string | undefined
    /**
     * The one address where that certificate is shown, to pods, and for which it is requested;
     * `undefined`: it is for every address of the hub.
     */
    readonly signedFor: string | undefined
    /** Organizations in that certificate besides `system:nodes`. */
    readonly organizations: readonly string[]
  }
  /** `undefined`: the limit of the process's control group. */
  readonly memoryLimitBytes: number | undefined
  readonly minRequestTimeoutMs: number
  /** Where traces are exported; `undefined`: no request is traced. */
  readonly tracing: TracingConfig | undefined
}

interface TracingConfig {
  /** The base address of the collector. */
  readonly endpoint: URL
  /** Of requests that continue no trace. */
  readonly samplingRatePerMillion: number
}

/**
 * Settings that may change while the hub runs, by the file of --config: the options that are marked
 * `live`.
 */
export interface LiveConfig {
  readonly serverAddresses: readonly URL[]
  readonly lbMode: Values['lb-mode']
  readonly upstreamCompression: boolean
  readonly heartbeat: {
    readonly intervalMs: number
    readonly timeoutMs: number
    readonly failedRetry: number
    readonly healthyThreshold: number
  }
  readonly credentials: CredentialFiles
  /** How the hub obtains these credentials; `undefined`: they are given. */
  readonly bootstrap: BootstrapConfig | undefined
  /** Depends on the mode of host-network propagation, which is live too. */
  readonly plainProxy: PlainProxy
  readonly anonymousLoopback: Values['anonymous-loopback']
  readonly maxRequestsInFlight: number
  /** Names as `componentOf` makes them, or `*` for all. */
  readonly cacheComponents: ReadonlySet<string>
  readonly poolScopeResources: readonly GVR[]
  /**
   * Where filters get the node's pool and its nodes: the status of its NodePool, its NodeBuckets,
   * or nowhere.
   */
  readonly nodePools: 'status' | 'buckets' | 'off'
  readonly filters: {
    readonly enabled: boolean
    /** Names, or `*` for all; includes those that the working mode disables. */
    readonly disabled: ReadonlySet<string>
    readonly modules: readonly string[]
  }
  /** 'off' also if the filter is disabled. */
  readonly hostNetworkPropagation: 'off' | 'on'
  /** Settings for a reboot without a link. */
  readonly boot: {
    /** How often the objects that pods refer to are read again; 0: never. */
    readonly refreshMs: number
    /** Whether the node's condition `OfflineReady` is written. */
    readonly condition: boolean
  }
  readonly shutdownGracePeriodMs: number
  readonly logLevel: LogLevel
}

/**
 * The port without TLS serves, or refuses every caller. It is never closed: another program could
 * bind it.
 */
export type PlainProxy = 'served' | 'refusing'

export type LogLevel = NonNullable<Values['log-level']>

/** Inputs of the start configuration besides settings. */
export interface HostFacts {
  readonly nodeName: string
  readonly sockets: SocketsByListener
  readonly storeKey: StoreKeySource
  /** Whether the hub has a client certificate of this node, or obtains one. */
  readonly isNode: boolean
  /** Whether `--hub-cert-signer` was given, which may be empty. */
  readonly isSignerGiven: boolean
}

/** The start configuration, from validated settings. */
export function startConfigOf(
  values: StartValues,
  { nodeName, sockets, storeKey, isNode, isSignerGiven }: HostFacts,
): StartConfig {
  const hub = values['hub-address']
  const { 'serving-cert': servingCert, 'serving-key': servingKey } = values
  const securePort = values['proxy-secure-port']
  const dummy = dummyInterfaceOf(values)
  const isSignedByDefault =
    !isSignerGiven && isNode && dummy !== undefined && mayBeSignedByDefault(values)
  return frozen({
    nodeName,
    nodepoolName: values['nodepool-name'],
    configMap: configMapOf(values),
    ops: { address: values['bind-address'], port: values['serve-port'] },
    proxy: {
      address: values['bind-proxy-address'],
      port: values['proxy-port'],
      securePort,
      plain: values['plain-proxy'],
    },
    sockets,
    rootDir: values['root-dir'],
    cachePath: values['disk-cache-path'] ?? join(values['root-dir'], 'cache'),
    cacheMaxBytes: values['cache-max-bytes'],
    storeKey,
    workingMode: values['working-mode'],
    pods: {
      dummy,
      hubAddress: hub && { host: hub.host, port: hub.port ?? securePort },
      hostNetworkNode: values['host-network-node'],
    },
    tls: {
      clientCa: values['client-ca'],
      serving:
        servingCert === undefined || servingKey === undefined
          ? undefined
          : { certificate: servingCert, key: servingKey },
      signer: isSignedByDefault ? kubeletServing : values['hub-cert-signer'],
      signedFor: isSignedByDefault ? dummy.address : undefined,
      organizations: values['hub-cert-organizations'],
    },
    memoryLimitBytes: bytesOf(values['memory-limit']),
    minRequestTimeoutMs: values['min-request-timeout'],
    tracing: tracingOf(values),
  })
}

/** The signer that yurthub uses, too; it signs for nodes, with no other organization. */
const kubeletServing = 'kubernetes.io/kubelet-serving'

/** Whether no other setting says which certificate pods are shown, or where they are led. */
const mayBeSignedByDefault = (values: StartValues): boolean =>
  values['serving-cert'] === undefined &&
  values['hub-address'] === undefined &&
  values['hub-cert-organizations'].length === 0

/**
 * The live configuration of a hub that was started with `start`; the two may come from different
 * readings.
 */
export function liveConfigOf(
  values: LiveValues,
  credentials: CredentialFiles,
  { workingMode, proxy, pods }: StartConfig,
): LiveConfig {
  const disabled = new Set([
    ...values['disabled-resource-filters'],
    ...(workingMode === 'cloud' ? edgeOnlyFilters : []),
  ])
  if (!values['access-server-through-hub']) disabled.add('masterservice')
  return frozen({
    serverAddresses: values['server-addr'],
    lbMode: values['lb-mode'],
    upstreamCompression: values['upstream-compression'],
    heartbeat: {
      intervalMs: values['heartbeat-interval-seconds'],
      timeoutMs: values['heartbeat-timeout-seconds'],
      failedRetry: values['heartbeat-failed-retry'],
      healthyThreshold: values['heartbeat-healthy-threshold'],
    },
    credentials,
    bootstrap: credentials.kind === 'bootstrap' ? bootstrapOf(values) : undefined,
    plainProxy: plainProxyOf({
      'plain-proxy': proxy.plain,
      'host-network-node': pods.hostNetworkNode,
      'host-network-propagation': values['host-network-propagation'],
    }),
    anonymousLoopback: values['anonymous-loopback'],
    maxRequestsInFlight: values['max-requests-in-flight'],
    cacheComponents: new Set(values['cache-components'].map((name) => name.toLowerCase())),
    poolScopeResources: [...alwaysShared, ...values['pool-scope-resources']],
    nodePools: nodePoolsOf(values),
    filters: {
      enabled: values['enable-resource-filter'],
      disabled,
      modules: values['filter-module'],
    },
    hostNetworkPropagation:
      values['enable-resource-filter'] &&
      !disabled.has('*') &&
      !disabled.has('hostnetworkpropagation') &&
      values['host-network-propagation'] === 'on'
        ? 'on'
        : 'off',
    boot: {
      refreshMs: values['boot-refresh-interval'],
      condition: values['offline-ready-condition'],
    },
    shutdownGracePeriodMs: values['shutdown-grace-period'],
    logLevel: values['log-level'] ?? levelOfVerbosity(values.v),
  })
}

/** How the hub obtains its own credentials, if it does. */
export function bootstrapOf(values: LiveValues): BootstrapConfig {
  return {
    token: parseBootstrapToken(values['join-token'] ?? ''),
    file: values['bootstrap-file'],
    caHashes: values['discovery-token-ca-cert-hash'],
    anyCa: values['discovery-token-unsafe-skip-ca-verification'],
    ca: values['upstream-ca'],
  }
}

function nodePoolsOf(values: LiveValues): LiveConfig['nodePools'] {
  if (values['enable-pool-service-topology']) return 'buckets'
  return values['enable-node-pool'] ? 'status' : 'off'
}

function tracingOf(values: StartValues): TracingConfig | undefined {
  const { 'tracing-endpoint': endpoint, 'tracing-sampling-rate-per-million': rate } = values
  return endpoint && { endpoint, samplingRatePerMillion: rate }
}

function configMapOf(values: StartValues): StartConfig['configMap'] {
  const name = values['hub-config-map']
  return name === undefined ? undefined : { namespace: values.namespace ?? 'kube-system', name }
}

const bytesOf = (megabytes: number | undefined): number | undefined =>
  megabytes === undefined ? undefined : megabytes * 1024 * 1024

/** klog's levels, as Kubernetes' own components use them: 4 is debugging, 6 shows requests. */
function levelOfVerbosity(v: number | undefined): LogLevel {
  if (v === undefined || v < 4) return 'info'
  return v < 6 ? 'debug' : 'trace'
}

/** Freezes plain data deeply; sets and URLs are read-only by type. */
function frozen<T extends object>(value: T): T {
  for (const inner of Object.values(value)) {
    const plain = Object.getPrototypeOf(inner ?? 0) === Object.prototype || Array.isArray(inner)
    if (plain) frozen(inner as object)
  }
  return Object.freeze(value)
}

/**
 * The mode of the plain port: if pods could reach it without credentials, it serves only if
 * `--plain-proxy` requests it.
 */
export function plainProxyOf(
  values: Pick<Values, 'plain-proxy' | 'host-network-node' | 'host-network-propagation'>,
): PlainProxy {
  const open = !values['host-network-node'] && values['host-network-propagation'] === 'off'
  return (values['plain-proxy'] ?? open) ? 'served' : 'refusing'
}
