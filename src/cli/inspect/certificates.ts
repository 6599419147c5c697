import type { HubStatus } from '../../hub/wiring/status/document.ts'
import { aligned } from '../aligned.ts'
import { anyStatus } from './hub-status.ts'
import { inspection } from './inspection.ts'

/** Exit code 1: one is not valid now. */
export const certificates = inspection<HubStatus['certificates']>({
  ofStopped: true,
  read: async (from) => (await anyStatus(from)).certificates,
  table: (all) =>
    aligned(
      ['USE', 'VALID UNTIL', 'FILE', 'NAMES', 'FAULT'],
      all.map(({ use, notAfter, file, names, fault, renewalFault }) => [
        use,
        notAfter,
        file ?? '-',
        names,
        [fault, renewalFault && `no new one is obtained: ${renewalFault}`]
          .filter((each) => each !== undefined)
          .join('; '),
      ]),
    ),
  code: (all) => (all.some(({ fault }) => fault !== undefined) ? 1 : 0),
})
