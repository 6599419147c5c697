import { Broadcast } from '../../../base/broadcast.ts'
import type { Exchange, Handler } from '../../../http/exchange/exchange.ts'
import type { LogStore } from '../../store/log/log-store.ts'
import type { HubContext } from '../hub-context.ts'
import { HubConfigMap } from '../config-map.ts'
import type { RecordedComponents } from '../data-path.ts'
import { DummyInterface } from '../dummy-interface.ts'
import type { EnabledFilters } from '../enabled-filters.ts'
import { FilterInputs } from '../filter-inputs.ts'
import { ReachableAddress } from '../hub-address.ts'
import { requestedServingOf, servingLine } from '../serving-certificate.ts'
import type { CloudParts } from './cloud.ts'

interface Dependencies extends HubContext, Omit<CloudParts, 'reconfigure' | keyof AsyncDisposable> {
  readonly store: LogStore
  /** For the hub's own requests. */
  readonly dispatch: Handler<Exchange>
  readonly filters: EnabledFilters
  readonly recorded: RecordedComponents
}

/** What filters know of the cluster and of the hub's own address. */
export type InputParts = Awaited<ReturnType<typeof openInputs>>

export async function openInputs(dependencies: Dependencies) {
  const { config, connections, serving, filters } = dependencies
  const { onlineChanged, credentialsReplaced, servingReplaced } = dependencies
  await using parts = new AsyncDisposableStack()
  const addressesChanged = new Broadcast()
  const onServiceAddresses = (): void => addressesChanged.announce()
  const inputs = parts.use(new FilterInputs({ ...dependencies, onServiceAddresses }))
  const serviceAddresses = (): readonly string[] | null | undefined => inputs.serviceAddresses
  const requested = requestedServingOf({ ...dependencies, serviceAddresses })
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
      metrics: dependencies.metrics,
      log: dependencies.log,
    }),
  )
  for (const changed of [credentialsReplaced, servingReplaced, addressesChanged])
    parts.use(changed.listen(() => void hubAddress.probe()))
  if (requested || hubAddress.isWanted) void inputs.ensure(new Set(['serviceAddresses']))
  const configMap = parts.use(new HubConfigMap(dependencies))
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
        log: dependencies.log,
      }),
    )
  const open = parts.move()
  return {
    inputs,
    configMap,
    hubAddress,
    /** The serving certificate that pods trust; `undefined`: none is requested. */
    requested,
    /** The interface at which pods reach the hub; it has to be disposed of after the proxies. */
    dummy,
    /** For `/readyz?verbose`. */
    verboseLines: (): readonly string[] => [
      ...configMap.verboseLines(),
      ...inputs.verboseLines(),
      ...filters.verboseLines(),
      ...(requested ? [servingLine(requested)] : []),
      ...(dummy ? [dummy.verboseLine()] : []),
      ...hubAddress.verboseLines(),
    ],
    reconfigure: (): void => {
      inputs.reconfigure()
      learnPool()
      configMap.reconfigure()
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
