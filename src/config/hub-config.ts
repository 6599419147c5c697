import { join } from 'node:path'
import { alwaysShared } from '../api/kube/node-pool.ts'
import { parseBootstrapToken, type BootstrapConfig } from './bootstrap.ts'
import type { CredentialFiles } from './credentials.ts'
import { dummyInterfaceOf } from './dummy-interface.ts'
import { edgeOnlyFilters } from './filter-names.ts'
import type { LiveValues, StartValues, Values } from './options.ts'
import type { SocketsByListener } from './passed-sockets.ts'
import type { StoreKeySource } from './store-key.ts'

/** The whole configuration, parsed once; times are in milliseconds. */
export type HubConfig = StartConfig & LiveConfig

/** Settings that are fixed at the start of a hub. */
export type StartConfig = ReturnType<typeof startConfigOf>

/**
 * Settings that may change while the hub runs, by the file of --config: the options that are marked
 * `live`.
 */
export type LiveConfig = ReturnType<typeof liveConfigOf>

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
) {
  const hub = values['hub-address']
  const { 'serving-cert': servingCert, 'serving-key': servingKey } = values
  const { 'tracing-endpoint': endpoint, 'hub-config-map': configMap } = values
  const securePort = values['proxy-secure-port']
  const dummy = dummyInterfaceOf(values)
  const isSignedByDefault =
    !isSignerGiven && isNode && dummy !== undefined && mayBeSignedByDefault(values)
  return {
    nodeName,
    nodepoolName: values['nodepool-name'],
    /** The hubs' ConfigMap; `undefined`: none is read. */
    configMap:
      configMap === undefined
        ? undefined
        : { namespace: values.namespace ?? 'kube-system', name: configMap },
    /** Health, readiness, metrics. */
    ops: { address: values['bind-address'], port: values['serve-port'] },
    /** The proxy's listeners: `port` without TLS, `securePort` with it. */
    proxy: {
      address: values['bind-proxy-address'],
      port: values['proxy-port'],
      securePort,
      /** `undefined`: not given, and `plainProxy` has the safe default. */
      plain: values['plain-proxy'],
    },
    /** Passed sockets, which take precedence over the addresses above. */
    sockets,
    rootDir: values['root-dir'],
    cachePath: values['disk-cache-path'] ?? join(values['root-dir'], 'cache'),
    cacheMaxBytes: values['cache-max-bytes'],
    storeKey,
    workingMode: values['working-mode'],
    /** How pods reach the hub. If all are absent or false, they cannot. */
    pods: {
      /** The interface that the hub makes for them. */
      dummy,
      /** `--hub-address`, which takes precedence. */
      hubAddress: hub && { host: hub.host, port: hub.port ?? securePort },
      /** Pods share the node's loopback. */
      hostNetworkNode: values['host-network-node'],
    },
    tls: {
      /** A file; absent: the API servers' CA. */
      clientCa: values['client-ca'],
      /** Files; absent: a certificate of the hub's own authority. */
      serving:
        servingCert === undefined || servingKey === undefined
          ? undefined
          : { certificate: servingCert, key: servingKey },
      /** From whom the hub requests its serving certificate; `undefined`: it does not. */
      signer: isSignedByDefault ? kubeletServing : values['hub-cert-signer'],
      /**
       * The one address where that certificate is shown, to pods, and for which it is requested;
       * `undefined`: it is for every address of the hub.
       */
      signedFor: isSignedByDefault ? dummy.address : undefined,
      /** Organizations in that certificate besides `system:nodes`. */
      organizations: values['hub-cert-organizations'],
    },
    /** `undefined`: the limit of the process's control group. */
    memoryLimitBytes: bytesOf(values['memory-limit']),
    minRequestTimeoutMs: values['min-request-timeout'],
    /** Where traces are exported; `undefined`: no request is traced. */
    tracing: endpoint && {
      /** The base address of the collector. */
      endpoint,
      /** Of requests that continue no trace. */
      samplingRatePerMillion: values['tracing-sampling-rate-per-million'],
    },
  } as const
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
) {
  const disabled = new Set([
    ...values['disabled-resource-filters'],
    ...(workingMode === 'cloud' ? edgeOnlyFilters : []),
  ])
  if (!values['access-server-through-hub']) disabled.add('masterservice')
  return {
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
    /** How the hub obtains these credentials; `undefined`: they are given. */
    bootstrap: credentials.kind === 'bootstrap' ? bootstrapOf(values) : undefined,
    /** Depends on the mode of host-network propagation, which is live too. */
    plainProxy: plainProxyOf({
      'plain-proxy': proxy.plain,
      'host-network-node': pods.hostNetworkNode,
      'host-network-propagation': values['host-network-propagation'],
    }),
    anonymousLoopback: values['anonymous-loopback'],
    maxRequestsInFlight: values['max-requests-in-flight'],
    /** Names as `componentOf` makes them, or `*` for all. */
    cacheComponents: new Set(values['cache-components'].map((name) => name.toLowerCase())),
    poolScopeResources: [...alwaysShared, ...values['pool-scope-resources']],
    /**
     * Where filters get the node's pool and its nodes: the status of its NodePool, its NodeBuckets,
     * or nowhere.
     */
    nodePools: nodePoolsOf(values),
    filters: {
      enabled: values['enable-resource-filter'],
      /** Names, or `*` for all; includes those that the working mode disables. */
      disabled,
      modules: values['filter-module'],
    },
    /** 'off' also if the filter is disabled. */
    hostNetworkPropagation:
      values['enable-resource-filter'] &&
      !disabled.has('*') &&
      !disabled.has('hostnetworkpropagation') &&
      values['host-network-propagation'] === 'on'
        ? 'on'
        : 'off',
    /** Settings for a reboot without a link. */
    boot: {
      /** How often the objects that pods refer to are read again; 0: never. */
      refreshMs: values['boot-refresh-interval'],
      /** Whether the node's condition `OfflineReady` is written. */
      condition: values['offline-ready-condition'],
    },
    shutdownGracePeriodMs: values['shutdown-grace-period'],
    logLevel: values['log-level'] ?? levelOfVerbosity(values.v),
  } as const
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

function nodePoolsOf(values: LiveValues): 'status' | 'buckets' | 'off' {
  if (values['enable-pool-service-topology']) return 'buckets'
  return values['enable-node-pool'] ? 'status' : 'off'
}

const bytesOf = (megabytes: number | undefined): number | undefined =>
  megabytes === undefined ? undefined : megabytes * 1024 * 1024

/** klog's levels, as Kubernetes' own components use them: 4 is debugging, 6 shows requests. */
function levelOfVerbosity(v: number | undefined): LogLevel {
  if (v === undefined || v < 4) return 'info'
  return v < 6 ? 'debug' : 'trace'
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
