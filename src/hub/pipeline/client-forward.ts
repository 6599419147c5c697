import type { Forward } from '../upstream/forward.ts'
import {
  withAuthenticationOutcome,
  type AuthenticationForward,
  type KeyLearningOptions,
} from './authentication-outcome.ts'
import type { OnShed } from './in-flight.ts'
import { MemoryBudget } from './memory.ts'

export interface ClientForwardOptions {
  /**
   * Where the keys that sign service accounts' tokens are kept, and who hears how fetching them
   * went.
   */
  readonly learning: KeyLearningOptions
  /** Roughly how much memory the process may use. */
  readonly memoryLimitBytes: number
  readonly onShed: OnShed
}

/** How what clients ask is forwarded, and what the pipeline above has to know of that. */
export interface ClientForward {
  readonly forward: Forward
  readonly authentication: AuthenticationForward
  readonly memory: MemoryBudget
}

/**
 * Forwards for clients: what an answer says of its caller is heeded, and what comes from the cloud
 * counts as held from its arrival on.
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
