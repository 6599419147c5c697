import type { Logger } from 'pino'
import { Broadcast } from '../../../base/broadcast.ts'
import type { LiveConfig, StartConfig } from '../../../config/hub-config.ts'
import type { HubMetrics } from '../../../metrics/metrics.ts'
import type { LogStore } from '../../store/log/log-store.ts'
import { checkFormer } from '../former-store.ts'
import type { Health } from '../health.ts'
import type { NodeKeys } from '../node-key.ts'
import { storeOf } from '../store.ts'
import type { CloudParts } from './cloud.ts'

interface Dependencies extends Pick<CloudParts, 'cloud' | 'cluster'> {
  readonly keys: NodeKeys
  readonly health: Health
  readonly metrics: HubMetrics
  readonly log: Logger
}

/** What is recorded. */
export interface CacheParts extends AsyncDisposable {
  readonly store: LogStore
  /** Announced soon after a commit. */
  readonly committed: Broadcast
}

/** Rejects where the store cannot be opened, or one of a former release would be lost offline. */
export async function openCache(
  config: StartConfig,
  live: () => LiveConfig,
  { cloud, cluster, keys, health, metrics, log }: Dependencies,
): Promise<CacheParts> {
  await using parts = new AsyncDisposableStack()
  const committed = new Broadcast()
  const setFormerAside = await checkFormer(config.cachePath, { cluster, cloud, log })
  const store = parts.use(await storeOf(config, live, { keys, metrics, health, log, committed }))
  setFormerAside()
  const open = parts.move()
  return {
    store,
    committed,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
