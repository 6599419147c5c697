import { OpenList } from '../base/open-list.ts'
import type { Logger } from 'pino'
import { makeSyncedFolder } from '../base/folder.ts'
import type { RecentLines } from '../base/recent-items.ts'
import { includes, isAlikeForAll, type GVR } from '../api/kube/gvk.ts'
import type { HubConfig, LiveConfig } from '../config/hub-config.ts'
import type { SettingsReport } from '../config/settings-in-force.ts'
import { checkResults, isReady } from '../http/server/ops.ts'
import { createMetrics, type HubMetrics } from '../metrics/metrics.ts'
import { RefusedReads } from './boot/refused-reads.ts'
import type { FilterDefinition } from './filter/filter.ts'
import type { OpenRequest } from './pipeline/open-requests.ts'
import { Admission } from './pipeline/admission.ts'
import { memoryLimit } from './wiring/memory.ts'
import type { AnswerLine } from './pipeline/trace.ts'
import { AnswerRecord } from './wiring/answer-record.ts'
import { Boot } from './wiring/boot.ts'
import { certificateCheck } from './wiring/credentials.ts'
import { clientPath, cloudPath, ensureInputsOf, RecordedComponents } from './wiring/data-path.ts'
import { EnabledFilters, filtersOfModules } from './wiring/enabled-filters.ts'
import { gaugesOnRead, logListening, logReady, measureLoad } from './wiring/gauges.ts'
import { Health } from './wiring/health.ts'
import { HostNetwork } from './wiring/host-network.ts'
import { inOwnFolder } from './wiring/own-folder.ts'
import { storeOf } from './wiring/store.ts'
import { openCloud } from './wiring/parts/cloud.ts'
import { openInputs } from './wiring/parts/filters.ts'
import { openIdentity } from './wiring/parts/identity.ts'
import { openOperatorsPort } from './wiring/parts/operators-port.ts'
import { openProxies, socketsOf, type OpenSocket } from './wiring/proxies.ts'
import { tracerOf } from './wiring/tracing.ts'

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
   * Applies all live settings, without ending a watch. Without `read`, the filters of modules stay.
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
  const context = { config, live, metrics, log }
  const health = new Health()
  const answers = parts.use(new AnswerRecord(log))
  const open = new OpenList<OpenRequest>()
  const admission = new Admission(
    () => live().maxRequestsInFlight,
    memoryLimit(config),
    (reason, level) => metrics.requestsRejected.add({ reason, priority_level: level }),
  )
  const refused = new RefusedReads()
  const tracer = parts.use(await tracerOf(context))
  inOwnFolder('--root-dir', config.rootDir, () => makeSyncedFolder(config.rootDir, 0o700))
  const modules = await filtersOfModules(config)

  const identity = parts.use(await openIdentity(context))
  const cloud = parts.use(await openCloud(context))
  cloud.onlineChanged.listen(onOnline)
  const isShared = (gvr: GVR): boolean =>
    isAlikeForAll(gvr) || includes(live().poolScopeResources, gvr)
  const store = parts.use(await storeOf({ ...context, ...identity, ...cloud, health, isShared }))
  const filters = new EnabledFilters(context, modules)
  const base = { ...context, ...identity, ...cloud, store, filters }
  const hostNetwork = new HostNetwork(base)
  gaugesOnRead({ ...base, health })

  const recorded = new RecordedComponents(live)
  const path = cloudPath({ ...base, recorded })
  const cachers = parts.use(path.cachers)
  cloud.cluster.keepIn(store, () => cachers.all.forEach((each) => each.restart()))
  metrics.onRead(() => metrics.cacherBytes.set(cachers.bytes))
  const inputs = parts.use(await openInputs({ ...base, dispatch: path.own, recorded }))
  const stopping = new AbortController()
  const checks = [...health.checks(store, config, stopping.signal), certificateCheck(cloud)]
  const boot = parts.use(
    new Boot({
      ...base,
      dispatch: path.own,
      refused: () => refused.all.filter(({ component }) => recorded.has(component)),
      failing: () =>
        checkResults(checks).flatMap(({ name, fault }) =>
          fault === undefined ? [] : `${name}: ${fault.slice(0, 200)}`,
        ),
    }),
  )

  parts.use(cloud.onlineChanged.listen((online) => online && boot.cameOnline()))
  metrics.onRead(() => metrics.ready.set(isReady(checks) ? 1 : 0))
  metrics.configLastReload.set(1)
  const handler = clientPath({
    ...base,
    ...path,
    ensureInputs: ensureInputsOf({ ...inputs, filters }),
    stopping: stopping.signal,
    open,
    admission,
    refused,
    tracer,
    onAnswer: (answered) => {
      answers.add(answered)
      onAnswer(answered)
    },
  })
  let sockets: readonly OpenSocket[] = []
  const ops = await openOperatorsPort({
    ...base,
    hostNetwork,
    inputs,
    boot,
    cachers,
    writes: path.dispatch.local.writes,
    answers,
    open,
    checks,
    verboseLines: () => [
      ...health.verboseLines(cloud.cloud, store, sockets),
      ...inputs.verboseLines(),
      boot.verboseLine(),
    ],
    settings,
    recentLog,
  })
  parts.defer(() => ops.close(0))
  const proxies = parts.use(await openProxies({ ...base, handler }))
  inputs.hubAddress.listening(proxies.secure.port)
  parts.defer(() => stopping.abort())
  const { seats } = admission
  parts.use(measureLoad(answers.hour, { ...base, seats, proxies }))
  parts.use(cloud.onlineChanged.listen(() => answers.hour.sample()))

  const showSockets = (): void => {
    const before = sockets
    sockets = [...socketsOf('ops', ops), ...proxies.sockets]
    logListening(sockets, before, log)
  }
  showSockets()
  logReady(checkResults(checks), log)
  inputs.dummy?.open(async (address) => {
    await proxies.listenAt(address)
    showSockets()
  })
  const running = parts.move()
  return {
    proxyPort: proxies.plain.port,
    proxySecurePort: proxies.secure.port,
    opsPort: ops.port,
    metrics,
    online: () => cloud.cloud.online,
    reconfigure: (next, read) => {
      inForce = next
      filters.reconfigure(next, read?.filters)
      inputs.reconfigure()
      cloud.reconfigure(next)
      health.configRead(read?.waiting ?? [])
      metrics.configReloads.add({ result: 'success' })
      metrics.configLastReload.set(1)
    },
    rejectConfig: (mistakes) => {
      health.configUnusable(mistakes)
      metrics.configReloads.add({ result: 'failure' })
      metrics.configLastReload.set(0)
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}
