import type { Logger } from 'pino'
import { Broadcast } from '../../../base/broadcast.ts'
import type { HubConfig, LiveConfig } from '../../../config/hub-config.ts'
import type { RequestedServingCertificate } from '../../../http/client/requested-serving-certificate.ts'
import type { Exchange, Handler } from '../../../http/exchange/exchange.ts'
import type { HubMetrics } from '../../../metrics/metrics.ts'
import type { FilterDefinition } from '../../filter/filter.ts'
import { HubConfigMap } from '../config-map.ts'
import { DummyInterface } from '../dummy-interface.ts'
import { EnabledFilters } from '../enabled-filters.ts'
import { FilterInputs } from '../filter-inputs.ts'
import { HostNetwork } from '../host-network.ts'
import { ReachableAddress } from '../hub-address.ts'
import type { RecordedComponents } from '../data-path.ts'
import { requestedServingOf, servingLine } from '../serving-certificate.ts'
import type { LogStore } from '../../store/log/log-store.ts'
import type { CloudParts } from './cloud.ts'

interface Dependencies {
  readonly store: LogStore
  readonly metrics: HubMetrics
  readonly log: Logger
}

/** The filters in force. */
export interface FilterParts {
  readonly filters: EnabledFilters
  readonly hostNetwork: HostNetwork
  /** `modules`: the filters of their files, where these were read together with the settings. */
  reconfigure(next: LiveConfig, modules: readonly FilterDefinition[] | undefined): void
}

/** `modules`: the filters of `--filter-module`. */
export function openFilters(
  config: HubConfig,
  modules: readonly FilterDefinition[],
  { store, metrics, log }: Dependencies,
): FilterParts {
  const filters = new EnabledFilters(config, metrics, log)
  filters.modules(modules)
  const inputs = (): EnabledFilters['inputs'] => filters.inputs
  return {
    filters,
    hostNetwork: new HostNetwork({ config, inputs, store, metrics, log }),
    reconfigure: (next, read) => {
      if (read) filters.modules(read)
      filters.reconfigure(next)
    },
  }
}

interface InputDependencies extends Omit<CloudParts, 'reconfigure' | keyof AsyncDisposable> {
  readonly store: LogStore
  readonly live: () => LiveConfig
  /** For the hub's own requests. */
  readonly dispatch: Handler<Exchange>
  readonly filters: EnabledFilters
  readonly recorded: RecordedComponents
  readonly metrics: HubMetrics
  readonly log: Logger
}

/** What filters know of the cluster and of the hub's own address. */
export interface InputParts extends AsyncDisposable {
  readonly inputs: FilterInputs
  readonly configMap: HubConfigMap
  readonly hubAddress: ReachableAddress
  /** The serving certificate that pods trust; `undefined`: none is requested. */
  readonly requested: RequestedServingCertificate | undefined
  /** The interface at which pods reach the hub; it has to be disposed of after the proxies. */
  readonly dummy: DummyInterface | undefined
  /** For `/readyz?verbose`. */
  readonly verboseLines: () => readonly string[]
  reconfigure(): void
}

export function openInputs(config: HubConfig, dependencies: InputDependencies): InputParts {
  const { connections, serving, filters, metrics, live, log } = dependencies
  const { onlineChanged, credentialsReplaced, servingReplaced } = dependencies
  using undone = new DisposableStack()
  const parts = new AsyncDisposableStack()
  undone.defer(() => void parts.disposeAsync())
  const readers = { ...dependencies, config }
  const addressesChanged = new Broadcast()
  const onServiceAddresses = (): void => addressesChanged.announce()
  const inputs = parts.use(new FilterInputs({ ...readers, onServiceAddresses }))
  const serviceAddresses = (): readonly string[] | null | undefined => inputs.serviceAddresses
  const requested = requestedServingOf(config, {
    live,
    connections,
    serving,
    serviceAddresses,
    log,
  })
  if (requested) {
    parts.use(requested)
    parts.use(onlineChanged.listen((online) => online && requested.wake()))
    parts.use(credentialsReplaced.listen(() => requested.wake()))
    parts.use(addressesChanged.listen(() => requested.wake()))
  }
  const hubAddress = parts.use(
    new ReachableAddress({
      pods: config.pods,
      certificate: () => (serving.current.elsewhere ?? serving.current).certificate,
      ca: () => connections.credentials.ca,
      serviceAddresses,
      publish: (found) => filters.setInputs({ hubAddress: found }),
      metrics,
      log,
    }),
  )
  for (const changed of [credentialsReplaced, servingReplaced, addressesChanged])
    parts.use(changed.listen(() => void hubAddress.probe()))
  if (requested || hubAddress.isWanted) void inputs.ensure(new Set(['serviceAddresses']))
  const configMap = parts.use(new HubConfigMap(readers))
  // The kubelet's watch may exist already, and no other request would need this input before a pod
  // is filtered.
  const learnPool = (): void => {
    if (filters.inputs.propagation !== 'off') void inputs.ensure(new Set(['pool']))
  }
  learnPool()
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
  undone.move()
  return {
    inputs,
    configMap,
    hubAddress,
    requested,
    dummy,
    verboseLines: () => [
      ...configMap.verboseLines(),
      ...inputs.verboseLines(),
      ...filters.verboseLines(),
      ...(requested ? [servingLine(requested)] : []),
      ...(dummy ? [dummy.verboseLine()] : []),
      ...hubAddress.verboseLines(),
    ],
    reconfigure: () => {
      inputs.reconfigure()
      learnPool()
      configMap.reconfigure()
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}
