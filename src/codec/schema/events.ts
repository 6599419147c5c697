import { eventSource } from './core.ts'
import { objectMeta } from './meta.ts'
import { objectReference } from './reference.ts'
import { int32, message, microtime, of, optional, shown, string, time } from './notation.ts'

// kubernetes/api events/v1

const eventSeries = message('EventSeries', {
  count: shown(int32(1)),
  lastObservedTime: microtime(2),
})

/** The same event as that of the core group, under other names. */
export const event = message('Event', {
  metadata: of(1, objectMeta),
  eventTime: microtime(2),
  series: optional(of(3, eventSeries)),
  reportingController: string(4),
  reportingInstance: string(5),
  action: string(6),
  reason: string(7),
  regarding: of(8, objectReference),
  related: optional(of(9, objectReference)),
  note: string(10),
  type: string(11),
  deprecatedSource: of(12, eventSource),
  deprecatedFirstTimestamp: time(13),
  deprecatedLastTimestamp: time(14),
  deprecatedCount: int32(15),
})
