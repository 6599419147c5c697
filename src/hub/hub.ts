import { join } from 'node:path'
import type { Logger } from 'pino'
import { Broadcast } from '../base/broadcast.ts'
import { now } from '../base/clock.ts'
import { makeSyncedFolder } from '../base/folder.ts'
import type { RecentLines } from '../base/recent-lines.ts'
import { Connections } from '../http/client/connections.ts'
import { loadCredentials } from '../http/client/credential-follower.ts'
import type { Credentials } from '../config/credentials.ts'
import type { HubConfig, LiveConfig } from '../config/hub-config.ts'
import type { SettingsReport } from '../config/settings-in-force.ts'
import { PodReferencesByVersion } from './boot/pod-references.ts'
import { RefusedReads } from './boot/refused-reads.ts'
import type { FilterDefinition } from './filter/filter.ts'
import { ShownStates } from './filter/shown-states.ts'
import { AnswerCounts } from './wiring/answer-counts.ts'
import { AnswerLog } from './wiring/answer-log.ts'
import { Boot, recordedSchemasOf } from './wiring/boot.ts'
import { HubConfigMap } from './wiring/config-map.ts'
import { cloudOf, reconfigureCloud } from './wiring/cloud.ts'
import {
  certificateCheck,
  followHubCredentials,
  logCertificateFault,
  servingOf,
} from './wiring/credentials.ts'
import { clientPath, cloudPath } from './wiring/data-path.ts'
import { EnabledFilters } from './wiring/enabled-filters.ts'
import { filtersOfModules, followModules } from './wiring/filter-modules.ts'
import { DummyInterface } from './wiring/dummy-interface.ts'
import { ReachableAddress } from './wiring/hub-address.ts'
import { gaugesOnRead, logReady, showConfigRead, showListening } from './wiring/gauges.ts'
import { Health } from './wiring/health.ts'
import { FilterInputs } from './wiring/filter-inputs.ts'
import { neededBy } from './wiring/needed.ts'
import { inspectToken } from './wiring/inspect-token.ts'
import { ensureInputsOf } from './wiring/ensure-inputs.ts'
import { HostNetwork, propagationDetector, shownPodsOf } from './wiring/host-network.ts'
import { ownHosts } from './wiring/names.ts'
import { listenAddresses } from './wiring/listen-addresses.ts'
import { ObtainedCertificate } from './wiring/node-certificate.ts'
import { nodeKeys } from './wiring/node-key.ts'
import { openProxies, socketsOf, type OpenSocket } from './wiring/proxies.ts'
import { inOwnFolder } from './wiring/own-folder.ts'
import { RecentRequests } from './wiring/recent-requests.ts'
import { RecordedComponents } from './wiring/recorded-components.ts'
import { accessReviewsOf } from './wiring/shared-cachers.ts'
import { requestedServingOf, servingLine } from './wiring/serving-certificate.ts'
import { contentReports } from './wiring/status/content-reports.ts'
import { pageFiles } from './wiring/status/page-files.ts'
import { statusReport } from './wiring/status/status.ts'
import { checkFormer } from './wiring/former-store.ts'
import { storeOf } from './wiring/store.ts'
import { tracerOf } from './wiring/tracing.ts'
import { KnownCluster } from './wiring/known-cluster.ts'
import { logFailure } from './wiring/log-failure.ts'
import { AcceptedCertificates } from './identity/accepted-certificates.ts'
import { ClusterKeys } from './identity/cluster-keys.ts'
import { isRoot } from './identity/caller.ts'
import { mayInspect } from './identity/inspectors.ts'
import { TokenVerdicts } from './identity/token-verdicts.ts'
import { SocketOwners } from './identity/socket-owner.ts'
import { createMetrics, type HubMetrics } from '../metrics/metrics.ts'
import { OpenWatches } from './pipeline/open-watches.ts'
import { refusalLine, type AnswerLine } from './pipeline/trace.ts'
import type { ServingCredentials } from '../http/server/listener.ts'
import { checkResults, isReady, listenOps } from '../http/server/ops.ts'

/**
 * A running hub. Disposing lets requests in flight finish within the configured grace period, then
 * cuts them.
 */
export interface Hub extends AsyncDisposable {
  /** The port of the plain proxy. */
  readonly proxyPort: number
  /** The port of the TLS proxy. */
  readonly proxySecurePort: number
  readonly opsPort: number
  readonly metrics: HubMetrics
  /** `undefined` until the first probes have decided. */
  readonly online: () => boolean | undefined
  /**
   * Applies all live settings, without ending a watch. Without `read`, the files of filter modules
   * are checked as after a change.
   */
  reconfigure(live: LiveConfig, read?: Reloaded): void
  /**
   * Shows in metrics and readiness that the configuration is invalid, and that the last valid one
   * stays in force.
   */
  rejectConfig(mistakes: readonly string[]): void
}

/** The files that were read together with the settings. */
export interface Reloaded {
  /** The filters of their modules. */
  readonly filters: readonly FilterDefinition[]
  /** Changed flags that wait for the next start. */
  readonly waiting: readonly string[]
}

export interface HubOptions {
  readonly log: Logger
  /** The last lines of this log, for the status document; absent: it has none. */
  readonly recentLog?: RecentLines
  /** The settings and their origins, for inspections; absent: they are not shown. */
  readonly settings?: () => SettingsReport
  /** Called when the hub goes offline or online. */
  readonly onOnline?: (online: boolean) => void
  /** Called for each answer after its end. */
  readonly onAnswer?: (line: AnswerLine) => void
}

/**
 * Builds a hub from its parts, in order, and starts it: reads credentials, opens the store,
 * listens. Resolves when requests are served, without waiting for API servers. Rejects with the
 * first failure, and leaves nothing open then.
 */
export async function startHub(
  config: HubConfig,
  { log, recentLog, settings, onOnline = () => {}, onAnswer = () => {} }: HubOptions,
): Promise<Hub> {
  await using parts = new AsyncDisposableStack()
  let inForce: LiveConfig = config
  const live = (): LiveConfig => inForce
  const metrics = createMetrics(() => live().cacheComponents)
  const health = new Health()
  const answers = parts.use(new AnswerLog(log))
  const counts = new AnswerCounts()
  const requests = new RecentRequests()
  const watches = new OpenWatches()
  const refused = new RefusedReads()
  const tracer = parts.use(await tracerOf(config, metrics, log))
  inOwnFolder('--root-dir', config.rootDir, () => makeSyncedFolder(config.rootDir, 0o700))

  const keys = await nodeKeys(config)
  const own = await filtersOfModules(config)

  const credentials = loadCredentials(config.credentials)
  logCertificateFault(credentials, log)
  const servingReplaced = new Broadcast<[ServingCredentials]>()
  const serving = parts.use(
    await servingOf(config, credentials.ca, (changed) => servingReplaced.announce(changed), log),
  )
  const connections = parts.use(new Connections(credentials))
  const onlineChanged = new Broadcast<[boolean]>()
  const cluster = new KnownCluster(connections, log)
  const cloud = parts.use(
    cloudOf(live, {
      connections,
      cluster,
      metrics,
      log,
      onOnline: (online) => onlineChanged.announce(online),
    }),
  )
  onlineChanged.listen(onOnline)
  const credentialsReplaced = new Broadcast<[Credentials]>()
  const credentialFollower = parts.use(
    followHubCredentials(
      config,
      credentials,
      (changed) => credentialsReplaced.announce(changed),
      log,
    ),
  )
  credentialsReplaced.listen((changed) => connections.replaceCredentials(changed))
  credentialsReplaced.listen(() => cloud.credentialsReplaced())
  credentialsReplaced.listen(({ ca }) => serving.replaceUpstreamCa(ca))

  const obtained = parts.use(
    new ObtainedCertificate(config, live, {
      cloud,
      onStored: () => credentialFollower.check(),
      log,
    }),
  )
  parts.use(onlineChanged.listen((online) => online && obtained.wake()))
  const committed = new Broadcast()
  const access = parts.use(accessReviewsOf(config, { metrics, log }))
  const references = new PodReferencesByVersion()
  const needed = neededBy(config.nodeName, references, access, log)
  const setFormerAside = await checkFormer(config.cachePath, { cluster, cloud, log })
  const store = parts.use(
    await storeOf(config, {
      keys,
      metrics,
      health,
      log,
      committed,
      needed,
    }),
  )
  setFormerAside()
  const podsKept = new Broadcast()
  const kept = parts.use(shownPodsOf(config, store, { onKept: () => podsKept.announce(), log }))
  const filters = parts.use(new EnabledFilters(config, kept, metrics, log))
  podsKept.listen(() => filters.remake())
  filters.modules(own)
  const moduleFollower = parts.use(followModules(config, own, { filters, health, metrics, log }))
  const hostNetwork = parts.use(
    new HostNetwork({
      config,
      inputs: () => filters.inputs,
      store,
      kept,
      metrics,
      log,
    }),
  )
  parts.use(committed.listen(() => hostNetwork.schedule()))
  gaugesOnRead(metrics, { config, cloud, connections, serving, store, health })

  const proofs = parts.use(
    new TokenVerdicts(join(config.rootDir, 'proofs.json'), (err) =>
      log.error(
        { err },
        'cannot write proofs.json: after a restart offline, accepted tokens are unknown',
      ),
    ),
  )
  const clusterKeys = parts.use(new ClusterKeys(join(config.rootDir, 'service-account-keys.json')))
  const owners = new SocketOwners()
  const recorded = new RecordedComponents(live)
  const path = cloudPath({
    config,
    live,
    cloud,
    connections,
    store,
    clusterKeys,
    access,
    keys,
    recorded,
    filters,
    owners,
    metrics,
    log,
  })
  const shared = parts.use(path.shared)
  const cachers = parts.use(path.cachers)
  cluster.keepIn(store, () => [...cachers.all, ...shared.all].forEach((each) => each.restart()))
  metrics.onRead(() => metrics.cacherBytes.set({ shared: 'true' }, shared.bytes))
  metrics.onRead(() => metrics.cacherBytes.set({ shared: 'false' }, cachers.bytes))
  const { own: dispatch, sharing } = path
  const readers = { config, live, cloud, dispatch, sharing, filters, recorded, metrics, log }
  const serviceAddressesChanged = new Broadcast()
  const inputs = parts.use(
    new FilterInputs({
      ...readers,
      onServiceAddresses: () => serviceAddressesChanged.announce(),
    }),
  )
  const requested = requestedServingOf(config, {
    live,
    connections,
    serving,
    serviceAddresses: () => inputs.serviceAddresses,
    log,
  })
  if (requested) {
    parts.use(requested)
    parts.use(onlineChanged.listen((online) => online && requested.wake()))
    parts.use(credentialsReplaced.listen(() => requested.wake()))
    parts.use(serviceAddressesChanged.listen(() => requested.wake()))
  }
  const hubAddress = parts.use(
    new ReachableAddress({
      pods: config.pods,
      certificate: () => (serving.current.elsewhere ?? serving.current).certificate,
      ca: () => connections.credentials.ca,
      serviceAddresses: () => inputs.serviceAddresses,
      publish: (found) => filters.inform({ hubAddress: found }),
      metrics,
      log,
    }),
  )
  parts.use(credentialsReplaced.listen(() => void hubAddress.probe()))
  parts.use(servingReplaced.listen(() => void hubAddress.probe()))
  parts.use(serviceAddressesChanged.listen(() => void hubAddress.probe()))
  if (requested || hubAddress.isWanted) void inputs.ensure(new Set(['serviceAddresses']))
  const configMap = parts.use(new HubConfigMap(readers))
  // The kubelet's watch may exist already, and no other request would need this input before a pod
  // is filtered.
  const learnPool = (): void => {
    if (filters.inputs.propagation !== 'off') void inputs.ensure(new Set(['pool']))
  }
  learnPool()
  const schemas = parts.use(recordedSchemasOf(config, log))
  const boot = parts.use(
    new Boot({
      nodeName: config.nodeName,
      schemas,
      live,
      store,
      access,
      references,
      refused: () => refused.all.filter(({ component }) => recorded.has(component)),
      cloud,
      dispatch,
      metrics,
      log,
    }),
  )
  parts.use(committed.listen(() => boot.schedule()))
  const stopping = new AbortController()
  const checks = [
    ...health.checks(store, config, stopping.signal),
    certificateCheck(cloud, connections, obtained),
  ]
  const accepted = parts.use(
    new AcceptedCertificates(join(config.rootDir, 'accepted-certificates.json'), (err) =>
      log.error(
        { err },
        "cannot write accepted-certificates.json: offline, the kubelet's certificate may not count after its end",
      ),
    ),
  )
  const handler = clientPath({
    config,
    live,
    path,
    store,
    proofs,
    clusterKeys,
    keys,
    owners,
    accepted,
    filters,
    detectPropagation: propagationDetector(config, kept),
    ensureInputs: ensureInputsOf({ filters, inputs, hubAddress }),
    shown: new ShownStates(),
    stopping: stopping.signal,
    watches,
    refused,
    tracer,
    metrics,
    log,
    onAnswer: (line, detail) => {
      answers.add(line)
      counts.add(line, now())
      requests.note(line, detail, now())
      onAnswer(line)
    },
  })
  const inspectors = { token: inspectToken(config, log), owners }
  metrics.onRead(() => metrics.ready.set(isReady(checks) ? 1 : 0))
  showConfigRead(metrics, true)
  // It goes after the proxies.
  const dummy =
    config.pods.dummy &&
    parts.use(
      new DummyInterface(config.pods.dummy, {
        rootDir: config.rootDir,
        settled: (why) => {
          hubAddress.dummySettled(why)
          if (config.tls.signedFor !== undefined) requested?.need(why === undefined)
        },
        log,
      }),
    )
  const verboseLines = (): readonly string[] => [
    ...health.verboseLines(cloud, store),
    ...configMap.verboseLines(),
    ...inputs.verboseLines(),
    ...filters.verboseLines(),
    boot.verboseLine(),
    ...(requested ? [servingLine(requested)] : []),
    ...(dummy ? [dummy.verboseLine()] : []),
    ...hubAddress.verboseLines(),
  ]
  const status = statusReport({
    config,
    cloud,
    connections,
    serving,
    renewalFaults: () => ({ client: obtained.fault, serving: requested?.fault }),
    store,
    cachers: () => [...cachers.all, ...shared.all],
    answers: counts,
    watches,
    boot,
    hostNetwork,
    filters,
    checks,
    verboseLines,
    log: recentLog,
  })
  const ops = await listenOps({
    at: listenAddresses(config, 'ops'),
    metrics,
    ownHosts: ownHosts(config),
    checks,
    verboseLines,
    inspections: {
      reports: {
        status,
        boot: () => boot.verdict(),
        'host-network': () => hostNetwork.report(),
        ...(settings && {
          config: async () => ({ ...settings(), configMap: configMap.report() }),
        }),
      },
      tails: { requests },
      content: {
        reports: contentReports({
          store,
          overlays: path.dispatch.local.overlays,
          running: { filters, answers: counts, watches },
          hostNetwork,
        }),
        authorize: ({ peer }) => isRoot(peer, owners),
      },
      authorize: (caller) => mayInspect(caller, inspectors),
    },
    page: pageFiles(),
    joinToken: {
      authorize: ({ peer }) => isRoot(peer, owners),
      replace: (token) => obtained.replaceToken(token),
    },
    onBroken: (err) =>
      logFailure(log, 'debug', { err }, 'a connection to the operators’ port broke off'),
    onRefused: (incoming, reply) => answers.add({ ...refusalLine(incoming, reply), ms: 0 }),
  })
  parts.defer(() => ops.close(0))
  const proxies = parts.use(
    await openProxies(config, live, { handler, serving, servingReplaced, metrics, log }),
  )
  hubAddress.listening(proxies.secure.port)
  parts.defer(() => stopping.abort())

  const sockets = (): readonly OpenSocket[] => [...socketsOf('ops', ops), ...proxies.sockets]
  const showSockets = (): void => showListening(sockets(), { health, log })
  showSockets()
  logReady(checkResults(checks), log)
  dummy?.open(async (address) => {
    const { length } = sockets()
    await proxies.listenAt(address)
    if (sockets().length > length) showSockets()
  })
  const running = parts.move()
  return {
    proxyPort: proxies.plain.port,
    proxySecurePort: proxies.secure.port,
    opsPort: ops.port,
    metrics,
    online: () => cloud.online,
    reconfigure: (next, read) => {
      inForce = next
      // Before the first answer in another mode.
      if (next.hostNetworkPropagation !== 'off') kept.keep()
      filters.reconfigure(next)
      shared.rescope()
      inputs.reconfigure()
      learnPool()
      configMap.reconfigure()
      reconfigureCloud(cloud, next)
      credentialFollower.move(next.credentials)
      obtained.reconfigure()
      moduleFollower.move(next.filters.modules, read?.filters)
      health.configRead(read?.waiting ?? [])
      metrics.configReloads.add({ result: 'success' })
      showConfigRead(metrics, true)
    },
    rejectConfig: (mistakes) => {
      health.configUnusable(mistakes)
      metrics.configReloads.add({ result: 'failure' })
      showConfigRead(metrics, false)
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}
