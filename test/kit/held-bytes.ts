import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/**
 * What the process holds, on the heap and outside of it, once all that nobody holds has been
 * collected.
 */
export function heldBytes(): number {
  collect()
  return heldNow()
}

/** Looks once: what takes two collections to go is there yet. */
function heldNow(): number {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** How many looks in a row have to find no less. */
const looks = 3

/**
 * The least of what the process holds, once it holds no less any more: on a busy machine
 * connections are still closing, and what they hold goes with them. What is kept for good stays.
 */
export async function heldForGood(): Promise<number> {
  let least = heldNow()
  for (let same = 0; same < looks; same++) {
    await sleep(20)
    const held = heldNow()
    if (held < least - 64 * 1024) same = -1
    least = Math.min(least, held)
  }
  return least
}
