import { now } from '../../../base/clock.ts'

/** Unchanged objects are confirmed on the disk no more often: each time is a write. */
const confirmEveryMs = 600_000

/**
 * Whether a confirmation is recent enough not to be written again. After a clock was set back it is
 * written.
 */
export const isRecent = (confirmedAt: number): boolean =>
  Math.abs(now() - confirmedAt) < confirmEveryMs
