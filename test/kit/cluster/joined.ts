import type { Socket } from 'node:net'
import { pipeline } from 'node:stream'

/**
 * Passes on what each of two connections sends to the other. Either may end its own half; both are
 * gone when one breaks off, also without an error, as `pipe` alone would not have it.
 */
export function joined(one: Socket, other: Socket): void {
  pipeline(one, other, () => undefined)
  pipeline(other, one, () => undefined)
}
