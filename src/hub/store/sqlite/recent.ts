import { now } from '../../../base/clock.ts'

/**
 * What is told again as it is stored is written down as confirmed no more often: each time is a
 * write to the disk.
 */
const confirmEveryMs = 600_000

/**
 * Whether what was confirmed at this time needs no newer one on the disk. A clock that was set back
 * does not keep that from being written.
 */
export const isRecent = (confirmedAt: number): boolean =>
  Math.abs(now() - confirmedAt) < confirmEveryMs
