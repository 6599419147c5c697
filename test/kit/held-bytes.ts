import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** The live memory of the process, on the heap and outside of it, after a garbage collection. */
export function heldBytes(): number {
  collect()
  return heldNow()
}

/** One collection: memory that needs two is still counted. */
function heldNow(): number {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** How many readings in a row must not decrease. */
const looks = 3

/**
 * The lowest reading once it no longer decreases: on a busy machine connections may still be
 * closing. Leaks remain. A reading of at most `enough` bytes is taken as it is.
 */
export async function heldForGood(enough = 0): Promise<number> {
  let least = heldNow()
  for (let same = 0; same < looks && least > enough; same++) {
    await sleep(20)
    const held = heldNow()
    if (held < least - 64 * 1024) same = -1
    least = Math.min(least, held)
  }
  return least
}
