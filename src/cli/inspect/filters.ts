import type { HubStatus } from '../../hub/wiring/status/document.ts'
import { aligned } from '../aligned.ts'
import { hubStatus } from './hub-status.ts'
import { inspection } from './inspection.ts'

/** Exit code 1: a filter waits for an input, or has failed. */
export const filters = inspection<HubStatus['filters']>({
  read: async (from) => (await hubStatus(from)).filters,
  table: (all) =>
    aligned(
      ['FILTER', 'STATE', 'WAITS FOR', 'EDITED', 'WITHHELD', 'FAILED'],
      all.map(({ name, state, waitsFor, edited, withheld, failed }) => [
        name,
        state,
        waitsFor.join(' '),
        String(edited),
        String(withheld),
        String(failed),
      ]),
    ),
  code: (all) => (all.some(({ state, failed }) => state === 'waiting' || failed > 0) ? 1 : 0),
})
