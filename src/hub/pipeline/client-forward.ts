import type { Forward } from '../upstream/forward.ts'
import {
  withAuthenticationOutcome,
  type AuthenticationForward,
  type KeyLearningOptions,
} from './authentication-outcome.ts'
import type { OnShed } from './in-flight.ts'
import { MemoryBudget } from './memory.ts'

interface ClientForwardOptions {
  /** Where the keys that sign service accounts' tokens are kept, and the hooks of fetching them. */
  readonly learning: KeyLearningOptions
  /** The memory that the process may use, about. */
  readonly memoryLimitBytes: number
  readonly onShed: OnShed
}

/** The forwarder for clients' requests, and the state that layers above it use. */
export interface ClientForward {
  readonly forward: Forward
  readonly authentication: AuthenticationForward
  readonly memory: MemoryBudget
}

/**
 * Forwards clients' requests: answers update the caller's authentication, and their bytes count as
 * held from their arrival on.
 */
export function clientForward(
  forward: Forward,
  { learning, memoryLimitBytes, onShed }: ClientForwardOptions,
): ClientForward {
  const memory = new MemoryBudget(memoryLimitBytes, onShed)
  const authentication = withAuthenticationOutcome(forward, learning)
  return {
    forward: async (exchange, options) => {
      const reply = await authentication.forward(exchange, options)
      return { ...reply, source: memory.received(exchange.id, reply.source) }
    },
    authentication,
    memory,
  }
}
