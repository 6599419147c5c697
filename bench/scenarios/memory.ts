import { setTimeout as sleep } from 'node:timers/promises'
import { brkHeapBytesOf, usageOf } from '../measure/process-usage.ts'
import type { Metric } from '../measure/row.ts'
import type { RunningPeer } from '../peers/peer.ts'
import type { Scenario } from './scenario.ts'

/** After this V8 has collected what it collects of an idle process. */
const settledSeconds = 20

/** What a peer holds in memory at that place of the run. */
function memory(
  row: Pick<Scenario, 'name' | 'title' | 'needs'>,
  most: { readonly resident: number; readonly anonymous?: number },
): Scenario {
  const { resident, anonymous } = most
  /** By whether peers answer in an outage: those that do not are measured before it. */
  const settled = new Map<boolean, Promise<void>>()
  /** Of these processes it is known: to read it again a moment later is no further round. */
  const known = new Set<number>()
  const metrics: readonly Metric[] = [
    { key: 'resident', title: 'MB', digits: 0, aims: [{ most: resident }] },
    {
      key: 'anonymous',
      title: 'anonymous MB',
      digits: 0,
      ...(anonymous !== undefined && { aims: [{ most: anonymous }] }),
    },
    { key: 'heap', title: 'brk heap MB', digits: 0 },
  ]
  return {
    ...row,
    metrics,
    takes: ({ processId }: RunningPeer) => processId !== undefined,
    prime: () => Promise.resolve(),
    async measure({ processId = 0, whenOffline }, { seconds }) {
      // Not while it is primed: rows of an outage are primed before it.
      const isLost = whenOffline === undefined
      const wait = settled.get(isLost) ?? sleep(Math.min(1, seconds) * settledSeconds * 1000)
      settled.set(isLost, wait)
      await wait
      if (known.has(processId)) return { figures: {}, failures: {}, loadShare: 0 }
      known.add(processId)
      const { residentBytes, anonymousBytes } = usageOf(processId)
      const heapBytes = brkHeapBytesOf(processId)
      const figures = {
        resident: residentBytes / 1e6,
        anonymous: anonymousBytes / 1e6,
        heap: heapBytes && heapBytes / 1e6,
      }
      return { figures, failures: {}, loadShare: 0 }
    },
  }
}

/** Stands before all other rows. */
export const memoryIdle = memory(
  { name: 'memory-idle', title: 'resident after the start, before any request', needs: 'online' },
  { resident: 80, anonymous: 28 },
)

/** Stands behind all other rows. */
export const memoryAfter = memory(
  {
    name: 'memory-after',
    title: 'resident 20 s after all rows of the run that a peer takes',
    needs: 'offline',
  },
  { resident: 140 },
)
