import { cpuBetween, forgetPeak, usageOf } from './process-usage.ts'

/**
 * What a process took for something that was done meanwhile. Nothing is known where there is no
 * process.
 */
export interface Cost {
  readonly cpuSeconds?: number
  /** The share of it that threads beside the main one took, 0 to 1. */
  readonly besideMain?: number
  /** The most that was resident meanwhile. */
  readonly peakMegabytes?: number
}

/** Runs `act` and returns the resources that the process `id` and its children used meanwhile. */
export async function costOf<Result>(
  id: number | undefined,
  act: () => Promise<Result>,
): Promise<{ result: Result; cost: Cost }> {
  if (id === undefined) return { result: await act(), cost: {} }
  forgetPeak(id)
  const before = usageOf(id)
  const result = await act()
  const after = usageOf(id)
  const threadSeconds = after.threadSeconds - before.threadSeconds
  const mainSeconds = after.mainSeconds - before.mainSeconds
  return {
    result,
    cost: {
      cpuSeconds: cpuBetween(before, after),
      ...(threadSeconds > 0 && { besideMain: 1 - mainSeconds / threadSeconds }),
      peakMegabytes: after.peakBytes / 1e6,
    },
  }
}

/** What is resident now. Nothing is known where there is no process. */
export const residentMegabytes = (id: number | undefined): number | undefined =>
  id === undefined ? undefined : usageOf(id).residentBytes / 1e6

/** `total` for each of `count` things; `undefined` where either is not known. */
export const each = (total: number | undefined, count: number): number | undefined =>
  total === undefined || count === 0 ? undefined : total / count
