import type { HubStatus } from '../../hub/wiring/status/document.ts'
import { aligned } from '../aligned.ts'
import { hubStatus } from './hub-status.ts'
import { inspection } from './inspection.ts'
import { paragraphs } from './printed.ts'

/** Exit code 1: no API server is healthy. */
export const upstreams = inspection<HubStatus['upstreams']>({
  read: async (from) => (await hubStatus(from)).upstreams,
  table: (all) =>
    paragraphs(
      aligned(
        ['API SERVER', 'HEALTH', 'SINCE', 'AVAILABILITY', 'PROBE', 'CONNECTIONS'],
        all.map((each) => [
          each.origin,
          each.health,
          each.since,
          each.availability,
          each.probeMs === undefined ? '-' : `${each.probeMs} ms`,
          String(each.connections),
        ]),
      ),
      aligned(
        ['API SERVER', 'LAST FAILED', 'TIMES', 'FAILURE'],
        all.flatMap(({ origin, failures }) =>
          failures.map(({ at, times, message }) => [origin, at, String(times), message]),
        ),
      ),
    ),
  code: (all) => (all.some(({ health }) => health === 'healthy') ? 0 : 1),
})
