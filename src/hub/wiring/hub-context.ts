import type { Logger } from 'pino'
import type { HubConfig, LiveConfig } from '../../config/hub-config.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'

/** What every part of a hub is made with. */
export interface HubContext {
  /** As at the start. */
  readonly config: HubConfig
  /** The settings in force, to be read anew each time. */
  readonly live: () => LiveConfig
  readonly metrics: HubMetrics
  readonly log: Logger
}
