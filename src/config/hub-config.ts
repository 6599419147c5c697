import { join } from 'node:path'
import type { GVR } from '../api/kube/gvk.ts'
import { alwaysShared } from '../api/kube/node-pool.ts'
import type { CredentialFiles } from './credentials.ts'
import { edgeOnlyFilters } from './filter-names.ts'
import type { LiveValues, StartValues, Values } from './options.ts'
import type { SocketsByListener } from './passed-sockets.ts'
import type { StoreKeySource } from './store-key.ts'

/** The whole configuration, parsed once. Frozen; times are in milliseconds. */
export interface HubConfig extends StartConfig, LiveConfig {}

/** What holds from the start of a hub to its end. */
export interface StartConfig {
  readonly nodeName: string
  readonly nodepoolName: string | undefined
  /** By which the cluster configures its hubs; `undefined`: none is read. */
  readonly configMap: { readonly namespace: string; readonly name: string } | undefined
  /** Health, readiness, metrics. */
  readonly ops: { readonly address: string; readonly port: number }
  /** Where the node speaks to the hub: `port` without TLS, `securePort` with it. */
  readonly proxy: {
    readonly address: string
    readonly port: number
    readonly securePort: number
    /**
     * Whether `port` was asked to serve; `undefined`: nobody has decided, and `plainProxy` is what
     * is safe.
     */
    readonly plain: boolean | undefined
  }
  /**
   * Listeners whose sockets were passed to this process listen there, whatever their addresses
   * above.
   */
  readonly sockets: SocketsByListener
  readonly rootDir: string
  readonly cachePath: string
  readonly cacheMaxBytes: number
  readonly storeKey: StoreKeySource
  readonly workingMode: Values['working-mode']
  /** How pods can reach the hub, as far as is known. All absent or false: they cannot. */
  readonly pods: {
    /** Of an interface made for this purpose. */
    readonly dummyAddress: string | undefined
    /** As the operator said; its port is the secure one where none was given. */
    readonly hubAddress: { readonly host: string; readonly port: number } | undefined
    /** Pods share the node's loopback. */
    readonly hostNetworkNode: boolean
  }
  readonly tls: {
    /**
     * Files; absent: the hub vouches for itself, and those who vouch for the API servers for its
     * clients.
     */
    readonly clientCa: string | undefined
    readonly serving: { readonly certificate: string; readonly key: string } | undefined
  }
  /** `undefined`: the limit of the process's control group. */
  readonly memoryLimitBytes: number | undefined
  readonly minRequestTimeoutMs: number
  readonly kubeletHealthGracePeriodMs: number
}

/** What may change while the hub runs, by its file; made of the options that are marked `live`. */
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
  /** It depends on the mode of host-network propagation, too, which is live. */
  readonly plainProxy: PlainProxy
  readonly anonymousLoopback: Values['anonymous-loopback']
  readonly maxRequestsInFlight: number
  /** Names as `componentOf` makes them, or `*` for all. */
  readonly cacheComponents: ReadonlySet<string>
  readonly poolScopeResources: readonly GVR[]
  /**
   * Where filters learn of the node's pool and its nodes: the status of its NodePool, its
   * NodeBuckets, or nowhere.
   */
  readonly nodePools: 'status' | 'buckets' | 'off'
  readonly filters: {
    readonly enabled: boolean
    /** Names; `*` stands for all. Those that the working mode leaves out are among them. */
    readonly disabled: ReadonlySet<string>
    readonly modules: readonly string[]
  }
  /** 'off' too where the filter is among those that are left out. */
  readonly hostNetworkPropagation: Values['host-network-propagation']
  /** What is done so that the node comes back without a link. */
  readonly boot: {
    /** How often what its pods refer to is asked for again; 0: never. */
    readonly refreshMs: number
    /** Whether the node's condition `OfflineReady` is written. */
    readonly condition: boolean
  }
  readonly shutdownGracePeriodMs: number
  readonly logLevel: LogLevel
}

/**
 * What the port without TLS does: it serves, or refuses every caller. It is never left free for
 * another program to take.
 */
export type PlainProxy = 'served' | 'refusing'

export type LogLevel = NonNullable<Values['log-level']>

/** Facts that what holds from the start on depends on besides its settings. */
export interface HostFacts {
  readonly nodeName: string
  readonly sockets: SocketsByListener
  readonly storeKey: StoreKeySource
}

/** What holds from the start on, from settings that were parsed and checked. */
export function startConfigOf(
  values: StartValues,
  { nodeName, sockets, storeKey }: HostFacts,
): StartConfig {
  const hub = values['hub-address']
  const { 'serving-cert': servingCert, 'serving-key': servingKey } = values
  const securePort = values['proxy-secure-port']
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
      dummyAddress: values['enable-dummy-if'] === false ? undefined : values['dummy-if-ip'],
      hubAddress: hub && { host: hub.host, port: hub.port ?? securePort },
      hostNetworkNode: values['host-network-node'],
    },
    tls: {
      clientCa: values['client-ca'],
      serving:
        servingCert === undefined || servingKey === undefined
          ? undefined
          : { certificate: servingCert, key: servingKey },
    },
    memoryLimitBytes: bytesOf(values['memory-limit']),
    minRequestTimeoutMs: values['min-request-timeout'],
    kubeletHealthGracePeriodMs: values['kubelet-health-grace-period'],
  })
}

/**
 * What the live settings make of a hub that was started with `start`; the two may come from
 * different readings.
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
      !disabled.has('hostnetworkpropagation')
        ? values['host-network-propagation']
        : 'off',
    boot: {
      refreshMs: values['boot-refresh-interval'],
      condition: values['offline-ready-condition'],
    },
    shutdownGracePeriodMs: values['shutdown-grace-period'],
    logLevel: values['log-level'] ?? levelOfVerbosity(values.v),
  })
}

function nodePoolsOf(values: LiveValues): LiveConfig['nodePools'] {
  if (values['enable-pool-service-topology']) return 'buckets'
  return values['enable-node-pool'] ? 'status' : 'off'
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

/** Deeply, as far as plain data goes; sets and URLs are read-only by type. */
function frozen<T extends object>(value: T): T {
  for (const inner of Object.values(value)) {
    const plain = Object.getPrototypeOf(inner ?? 0) === Object.prototype || Array.isArray(inner)
    if (plain) frozen(inner as object)
  }
  return Object.freeze(value)
}

/**
 * What the plain port does: where pods could reach it without credentials, it serves only if that
 * was asked for.
 */
export function plainProxyOf(
  values: Pick<Values, 'plain-proxy' | 'host-network-node' | 'host-network-propagation'>,
): PlainProxy {
  const open = !values['host-network-node'] && values['host-network-propagation'] === 'off'
  return (values['plain-proxy'] ?? open) ? 'served' : 'refusing'
}
