import type { Logger } from 'pino'
import { Recorder } from '../cache/recorder.ts'
import type { OnUnpacked } from '../../http/exchange/unpacked.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import { ownComponent } from '../../api/request/component.ts'
import { sharedIdentity } from '../../api/request/identity.ts'
import type { ObjectStore } from '../store/store.ts'
import type { EnabledFilters } from './filters.ts'
import type { RecordedComponents } from './recorded-components.ts'

interface RecorderDependencies {
  readonly recorded: RecordedComponents
  readonly filters: EnabledFilters
  readonly onUnpacked: OnUnpacked
  readonly metrics: HubMetrics
  readonly log: Logger
}

/**
 * Records answers to the configured components, those that a filter decodes through the recorder,
 * and those of shared collections.
 */
export const recorderOf = (
  store: ObjectStore,
  { recorded, filters, onUnpacked, metrics, log }: RecorderDependencies,
): Recorder =>
  new Recorder(
    store,
    {
      isRecorded: (exchange) => {
        const { component } = exchange
        // The hub reads its own answers through the recorder.
        if (exchange.identity === sharedIdentity || component === ownComponent) return true
        return recorded.has(component) || filters.actOn(exchange)
      },
      comparesEvents: (exchange) =>
        exchange.identity === sharedIdentity ||
        (exchange.comparesEvents?.() ?? filters.actOn(exchange)),
    },
    {
      onRecorded: (kind) => metrics.recorded.add({ kind }),
      onStoreFailure: (err) => log.error({ err }, 'cannot record an answer'),
      onMalformed: (err, { method, info }) => {
        metrics.malformed.add()
        log.warn({ err, method, path: info.path }, 'cannot parse an answer')
      },
      onUnpacked,
    },
  )
