import type { Logger } from 'pino'
import { acceptOnMoreDescriptors } from '../http/server/descriptors.ts'
import type { BoundSocket } from '../http/server/listening.ts'

/** Has `sockets` accept several connections a turn, in the background; logs where that fails. */
export function widenAccepting(sockets: readonly BoundSocket[], log: Logger): void {
  void acceptOnMoreDescriptors(sockets).then((reason) => {
    if (reason === undefined) return
    const effect = 'under a flood of connections new ones wait'
    log.warn({ reason }, `each socket accepts one connection a turn of the event loop: ${effect}`)
  })
}
